"""Waits for an answer of the web, through the client that reaches allowed hosts and public addresses only."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from agency.agent import background
from agency.agent.http_get import HttpGet
from agency.agent.text import cut
from agency.agent.tool_schema import ToolDefinitionError
from agency.execution.declaration import Fault
from agency.mission.watches.declared import BaseWatch, Look, View, is_text

SHOWN_CHARACTERS = 4_000


class HttpCheck(BaseWatch):
    """Over when `URL` answers with the `STATUS`, and its text holds `CONTAINS` where that is set.

    A server that cannot be reached does not fulfil it yet; an address that is refused is a failure. Set
    `NAME`, `DESCRIPTION`, `URL` and, if redirects lead to other hosts, `ALLOWED_HOSTS` as for the tool
    `http_get`; `ALLOW_PRIVATE` names hosts with private addresses, `HEADERS` what is sent to the hosts.
    """

    URL: ClassVar[str]
    STATUS: ClassVar[int] = 200
    CONTAINS: ClassVar[str | None] = None
    ALLOWED_HOSTS: ClassVar[Sequence[str]] = ()
    ALLOW_PRIVATE: ClassVar[Sequence[str]] = ()
    HEADERS: ClassVar[dict[str, SecretStr]] = {}

    @classmethod
    def faults(cls) -> Iterator[Fault]:
        if not is_text(getattr(cls, "URL", None)) or not urlsplit(cls.URL).hostname:
            yield Fault("URL is no whole address", "Set URL to an address with http:// or https://.")
            return
        try:
            cls._client()
        except (ToolDefinitionError, ValueError) as exc:
            yield Fault(f"it cannot be asked: {exc}", "Correct the setting that is named.")

    def look(self, view: View, memory: dict[str, Any]) -> Look:
        reading = self._client().read(
            self.URL, f"{view.execution_id}:watch:{self.NAME}", with_text=self.CONTAINS is not None
        )
        try:
            found = background.run(reading)
        except (ConnectionError, TimeoutError) as exc:
            return Look(False, memory={"last": cut(str(exc), 200)})
        if found.status != self.STATUS or (self.CONTAINS or "") not in found.text:
            return Look(False, memory={"last": f"{found.status} {found.reason}".strip()})
        return Look(True, payload={"status": found.status, "text": cut(found.text, SHOWN_CHARACTERS)})

    @classmethod
    def _client(cls) -> HttpGet:
        place = urlsplit(cls.URL)
        host = f"[{place.hostname}]" if ":" in (place.hostname or "") else place.hostname
        own = host if place.port is None else f"{host}:{place.port}"
        settings: dict[str, object] = {
            "allowed_hosts": [own, *cls.ALLOWED_HOSTS],
            "timeout": cls.LOOK_SECONDS * 0.9,  # earlier than the look's own end, which can say less
            "headers": cls.HEADERS,
        }
        return HttpGet(settings, allow_private=cls.ALLOW_PRIVATE)
