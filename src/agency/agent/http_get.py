"""The built-in tool `http_get`: reads text from the hosts that a project allows, and from nowhere else."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from agency.agent.injection import ToolCallInfo
from agency.agent.outgoing import Gate, HostRule, Resolve, listed, plain, resolve
from agency.agent.tool_classes import BaseFunctionTool
from agency.agent.tool_schema import ToolDefinitionError
from agency.agent.tools import Tool
from agency.agent.web_text import Answer, answer
from agency.enums import Effect
from agency.errors import InvalidInput

if TYPE_CHECKING:
    import ssl

    import httpx

MOST_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "idempotency-key"}


class HttpGetSettings(BaseModel):
    """What a project says about `http_get`. `max_bytes` caps a body; `timeout` is a whole call's, in seconds.

    `headers` are sent to every allowed host that the model names, over https (or to a private host that was
    opted in), and not any more after a redirect to another origin.
    """

    model_config = ConfigDict(extra="forbid")

    allowed_hosts: list[str] = Field(min_length=1)
    max_bytes: int = Field(default=200_000, gt=0)
    timeout: float = Field(default=20.0, gt=0, le=600)
    headers: dict[str, SecretStr] = {}

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts(cls, value: list[str]) -> list[str]:
        return [str(HostRule.parse(entry)) for entry in value]

    @field_validator("headers")
    @classmethod
    def _headers(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, secret in value.items():
            text = secret.get_secret_value()
            if not _HEADER.fullmatch(name) or name.lower() in _OURS:
                raise ValueError(f"{name!r} cannot be set as a header")
            if not (text.isascii() and text.isprintable()):
                raise ValueError(f"the value of {name!r} must be printable ASCII")
        return value


class HttpGet(BaseFunctionTool):
    """Read the text behind a web address.

    `allow_private` names hosts that may have private or loopback addresses; it is an argument and no setting,
    so that only code can open a way into the project's own network.
    """

    NAME = "http_get"
    CONFIGURATION_ARGS = HttpGetSettings
    EFFECT = Effect.READ

    def __init__(
        self,
        configuration: BaseModel | dict[str, object] | None = None,
        allow_private: Sequence[str] = (),
        resolve: Resolve = resolve,
    ) -> None:
        super().__init__(configuration)
        self.settings: HttpGetSettings = self.configuration
        rules = tuple(HostRule.parse(entry) for entry in self.settings.allowed_hosts)
        self._gate = Gate(rules, frozenset(_exact(host) for host in allow_private), resolve)

    @classmethod
    def overridden(cls, declared: dict[str, object], stored: dict[str, object]) -> dict[str, object]:
        """Stored settings may narrow the hosts, size and time that the project declares, and widen none."""
        settings = {**declared, **stored}
        before, after = cls.check_configuration(declared or settings), cls.check_configuration(settings)
        assert isinstance(before, HttpGetSettings)
        assert isinstance(after, HttpGetSettings)
        rules = [HostRule.parse(entry) for entry in before.allowed_hosts]
        for entry in after.allowed_hosts:
            if not any(rule.includes(HostRule.parse(entry)) for rule in rules):
                raise ToolDefinitionError(
                    f"tool 'http_get': configuration: allowed_hosts: {entry} is not among the hosts that the "
                    f"project allows: {listed(rules)}"
                )
        for name in {"max_bytes", "timeout"} & declared.keys():
            if getattr(after, name) > (most := getattr(before, name)):
                raise ToolDefinitionError(
                    f"tool 'http_get': configuration: {name}: the project allows {most}"
                )
        return settings

    def as_tool(self) -> Tool:
        made = super().as_tool()
        # Later than the tool's own end, which can say more.
        made.conduct = replace(made.conduct, timeout=self.settings.timeout + 5)
        return made

    async def run(self, url: str, info: ToolCallInfo) -> str:
        """Read.

        Args:
            url: A whole address with http:// or https://
        """
        return str(await self.read(url, info.idempotency_key))

    async def read(self, url: str, key: str, *, with_text: bool = True) -> Answer:
        """What is found at `url`; without its text, of any type. `key` is the request's idempotency key.

        `InvalidInput` if the address or what is there is refused, else `ConnectionError` or `TimeoutError`.
        """
        import httpx

        shown = url if len(url) <= 200 else f"{url[:200]}…"
        limit = self.settings.max_bytes if with_text else None
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await self._follow(url, quote(key, safe=":/,;=@+"), limit)
        except TimeoutError:
            raise TimeoutError(f"no whole answer within {self.settings.timeout:g} seconds") from None
        except (httpx.InvalidURL, UnicodeError) as exc:
            raise InvalidInput(f"refused: {shown!r} is no web address: {exc}") from None
        except httpx.HTTPError as exc:
            raise ConnectionError(f"no answer: {exc or type(exc).__name__}") from None

    def _description(self) -> str:
        return f"Read the text behind a web address. Allowed hosts: {listed(self._gate.rules)}."

    async def _follow(self, text: str, key: str, limit: int | None) -> Answer:
        import httpx

        url, trusted = httpx.URL(text), True
        for _ in range(MOST_REDIRECTS + 1):
            async with self._opened(url, key, trusted) as response:
                location = response.headers.get("location")
                if response.status_code not in _REDIRECTS or not location:
                    return await answer(response, url, limit)
            before, url = url, url.join(location)
            trusted = trusted and _origin(url) == _origin(before)
        raise InvalidInput(f"refused: more than {MOST_REDIRECTS} redirects")

    @asynccontextmanager
    async def _opened(self, url: "httpx.URL", key: str, trusted: bool) -> AsyncGenerator["httpx.Response"]:
        """The response to one request, sent to an address that was checked.

        The client is made for it: one that is kept would share connections and cookies between names that
        have an address in common.
        """
        import httpx

        host, port = _place(url)
        addresses = await self._gate.addresses(host, port)
        headers = self.headers_for(url, key, trusted)
        patience = httpx.Timeout(None, connect=self.settings.timeout / len(addresses))
        async with AsyncExitStack() as stack:
            trust = self._trust if url.scheme == "https" else _trust_nobody()
            client = httpx.AsyncClient(verify=trust, trust_env=False, timeout=patience)
            await stack.enter_async_context(client)
            requests = [
                client.build_request(
                    "GET", url.copy_with(host=one), headers=headers, extensions={"sni_hostname": host}
                )
                for one in addresses
            ]
            response = await _first_answer(client, requests)
            stack.push_async_callback(response.aclose)
            yield response

    def headers_for(self, url: "httpx.URL", key: str, trusted: bool) -> "httpx.Headers":
        """What a request says; the project's own headers only where nobody on the way can read them."""
        import httpx

        host, _ = _place(url)
        headers = httpx.Headers({"User-Agent": "agency", "Accept": "*/*"})
        if trusted and (url.scheme == "https" or host in self._gate.private):
            headers.update({name: value.get_secret_value() for name, value in self.settings.headers.items()})
        netloc = url.copy_with(host=host).netloc.decode("ascii")
        headers.update({"Host": netloc, "Accept-Encoding": "identity", "Idempotency-Key": key})
        return headers

    @cached_property
    def _trust(self) -> "ssl.SSLContext":
        import httpx

        return httpx.create_ssl_context()


def _trust_nobody() -> "ssl.SSLContext":
    """What a client gets that will not need certificates, since to load them takes long."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _first_answer(client: "httpx.AsyncClient", requests: Iterable["httpx.Request"]) -> "httpx.Response":
    """The answer of the first address that can be connected to."""
    import httpx

    failed: Exception | None = None
    for request in requests:
        try:
            return await client.send(request, stream=True, follow_redirects=False)
        except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
            failed = exc
    raise ConnectionError(f"no connection: {failed or type(failed).__name__}")


def _exact(host: str) -> str:
    """A host that is named wholly and without a port; a pattern opens no private addresses."""
    try:
        rule = HostRule.parse(host)
    except ValueError as exc:
        raise ToolDefinitionError(f"tool 'http_get': allow_private: {exc}") from None
    if rule.below or rule.port is not None:
        raise ToolDefinitionError(
            f"tool 'http_get': allow_private: {host!r} must be one host, without '*' and port"
        )
    return rule.host


def _place(url: "httpx.URL") -> tuple[str, int]:
    """Host and port of an address; one that is no plain web address is refused."""
    if url.scheme not in ("http", "https"):
        raise InvalidInput(
            f"refused: {url.scheme or 'no scheme'}; only http:// and https:// addresses are read"
        )
    if url.userinfo:
        raise InvalidInput("refused: the address holds a user name or password; leave them out")
    host = plain(url.raw_host.decode("ascii"))
    usual = 443 if url.scheme == "https" else 80
    return host, usual if url.port is None else url.port


def _origin(url: "httpx.URL") -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
