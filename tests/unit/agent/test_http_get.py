"""`http_get` reads what a project allows, and is not talked into reading anything else."""

import gzip
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from agency.agent import Agent, Effect, ExecutionContext, ToolConfig, ToolDefinitionError, resolve_tools
from agency.agent.builtins import http_get
from agency.agent.http_get import HttpGet, HttpGetSettings
from agency.agent.outgoing import Gate, HostRule, kind_of
from agency.agent.testing import ScriptedLlm, call

IDENTITY = Path(__file__).with_name("secure.test.pem")


class Site(ThreadingHTTPServer):
    """Answers what `pages` says for a path: status, headers and body; keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.closing = threading.Event()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def put(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = (status, {"Content-Type": "text/plain", **named}, body)

    def redirect(self, path: str, location: str, status: int = 302) -> None:
        self.put(path, status=status, Location=location)


class Page(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))
        if self.path == "/never":
            self.server.closing.wait(30)
            return
        if self.path == "/drip":
            self.drip()
            return
        status, headers, body = self.server.pages[self.path]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self) -> None:
        """A byte now and then, for ever: no single wait is long."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        try:
            while not self.server.closing.wait(0.02):
                self.wfile.write(b"x")
        except OSError:
            pass

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Names:
    """A resolver that answers from a table and counts; a list of lists is answered in turn."""

    def __init__(self, **addresses: Any) -> None:
        self.addresses = {name.replace("_", "."): found for name, found in addresses.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        found = self.addresses.get(host)
        if found is None:
            raise OSError("no such name")
        return found.pop(0) if isinstance(found[0], list) else found


def serve(made: Site) -> Iterator[Site]:
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield made
    made.closing.set()
    made.shutdown()
    made.server_close()
    thread.join(5)


@pytest.fixture
def site() -> Iterator[Site]:
    yield from serve(Site())


def get(tool: Any, url: str) -> tuple[str, str]:
    agent = Agent("clerk", ScriptedLlm(), tools=[tool])
    (result,) = agent.act(ExecutionContext(), [call("http_get", url=url)])
    return result.status, result.content


def local(site: Site, **settings: Any) -> Any:
    """The tool, opened for the site under its address."""
    return http_get([f"127.0.0.1:{site.port}"], allow_private=["127.0.0.1"], **settings)


def named(site: Site, names: Names, *private: str, **settings: Any) -> HttpGet:
    """The tool, allowed all of `*.test` at the site's port; `private` may be there."""
    return HttpGet({"allowed_hosts": [f"*.test:{site.port}"], **settings}, private, names)


def at(site: Site, path: str, host: str = "127.0.0.1") -> str:
    return f"http://{host}:{site.port}{path}"


# -- reading ---------------------------------------------------------------------------------------


def test_a_page_is_told_with_address_status_type_and_text(site: Site) -> None:
    site.put("/a?b=1", "Grüße".encode("latin-1"), Content_Type="text/plain; charset=latin-1")
    told = f"{at(site, '/a?b=1')}\n200 OK\ntext/plain; charset=latin-1\n\nGrüße"
    assert get(local(site), at(site, "/a?b=1")) == ("success", told)


def test_a_page_that_is_missing_is_an_answer_too(site: Site) -> None:
    site.put("/gone", b'{"error": "gone"}', status=404, Content_Type="application/problem+json")
    status, content = get(local(site), at(site, "/gone"))
    assert (status, content.splitlines()[1], content.splitlines()[-1]) == (
        "success",
        "404 Not Found",
        '{"error": "gone"}',
    )


def test_a_long_body_is_cut_with_a_note_and_no_half_character(site: Site) -> None:
    site.put("/long", "ä".encode() * 1000)
    _, content = get(local(site, max_bytes=101), at(site, "/long"))
    assert content.endswith(f"\n\n{'ä' * 50}\n[cut here: the first 101 of 2,000 bytes are shown]")


def test_a_body_of_just_the_cap_is_whole(site: Site) -> None:
    site.put("/exact", b"x" * 100)
    assert get(local(site, max_bytes=100), at(site, "/exact"))[1].endswith("\n\n" + "x" * 100)


@pytest.mark.parametrize("charset", ["nonsense", "punycode", "hex", ""])
def test_a_charset_that_is_none_counts_as_utf_8(site: Site, charset: str) -> None:
    site.put("/x", "Grüße".encode(), Content_Type=f"text/plain; charset={charset}")
    assert get(local(site), at(site, "/x"))[1].endswith("\n\nGrüße")


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("image/png", b"\x89PNG", "image/png, which is no text"),
        ("application/octet-stream", b"text?", "which is no text"),
        ("text/plain", b"\x7fELF\x00\x00", "binary, not text"),
    ],
)
def test_what_is_no_text_is_refused(site: Site, kind: str, body: bytes, why: str) -> None:
    site.put("/binary", body, Content_Type=kind)
    status, content = get(local(site), at(site, "/binary"))
    assert (status, why in content) == ("error", True)


def test_a_compressed_answer_is_refused_before_it_can_grow(site: Site) -> None:
    site.put("/bomb", gzip.compress(b"0" * 1_000_000), Content_Encoding="gzip")
    status, content = get(local(site), at(site, "/bomb"))
    assert (status, "compressed (gzip)" in content) == ("error", True)
    assert site.asked[0][1]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("path", ["/never", "/drip"])
def test_the_timeout_is_for_the_whole_call(site: Site, path: str) -> None:
    assert get(local(site, timeout=0.3), at(site, path)) == (
        "error",
        "TimeoutError: no whole answer within 0.3 seconds",
    )


def test_a_server_that_is_not_there_is_an_error(site: Site) -> None:
    port = site.port
    site.shutdown()
    site.server_close()
    tool = http_get([f"127.0.0.1:{port}"], allow_private=["127.0.0.1"])
    status, content = get(tool, f"http://127.0.0.1:{port}/")
    assert (status, content.startswith("ConnectionError: no connection")) == ("error", True)


def test_the_call_carries_its_idempotency_key_and_the_projects_headers(site: Site) -> None:
    site.put("/")
    agent = Agent("büro", ScriptedLlm(), tools=[local(site, headers={"X-Key": "s3cret"})])
    context = ExecutionContext()
    agent.act(context, [call("http_get", url=at(site, "/"))])
    (asked,) = site.asked
    assert asked[1]["X-Key"] == "s3cret"
    assert asked[1]["Idempotency-Key"].startswith(f"{context.execution_id}:")
    assert asked[1]["Host"] == f"127.0.0.1:{site.port}"


def test_proxies_of_the_environment_are_not_asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.put("/")
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert get(local(site), at(site, "/"))[0] == "success"


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://docs.test/", "refused: ftp; only http:// and https://"),
        ("file:///etc/passwd", "refused: file; only"),
        ("docs.test/a", "refused: no scheme; only"),
        ("http:///a", "refused: '' is no host"),
        ("http://user:pw@docs.test/", "user name or password"),
        ("http://docs.test@evil.test/", "user name or password"),
        ("http://docs.test\\@evil.test/", "user name or password"),
        ("http://evil.test\\.docs.test/", "refused: "),
        ("http://docs.test:8080/", "refused: docs.test at port 8080 is not allowed; allowed are docs.test"),
        ("http://docs.test:0/", "docs.test at port 0 is not allowed"),
        ("http://sub.docs.test/", "is not allowed"),
        ("http://docs.test.evil.test/", "is not allowed"),
        ("http://xdocs.test/", "is not allowed"),
        ("http://wild.test/", "is not allowed"),
        ("http://docs.test:99999/", "docs.test at port 99999 is not allowed"),
        ("http://[::1/", "is no web address"),
    ],
)
def test_an_address_that_is_not_allowed_is_refused_and_not_resolved(url: str, why: str) -> None:
    names = Names(docs_test=["127.0.0.1"])
    tool = HttpGet({"allowed_hosts": ["docs.test", "*.wild.test"]}, (), names)
    status, content = get(tool, url)
    assert (status, why in content, "pw" in content) == ("error", True, False), content
    assert names.asked == []


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.01", "1.2.3.4.5", "0"],
)
def test_an_address_in_disguise_is_no_host(host: str) -> None:
    names = Names(**{host: ["127.0.0.1"]})
    rules = (HostRule(host),)
    status, content = get(HttpGet({"allowed_hosts": ["docs.test"]}, (), names), f"http://{host}/")
    assert (status, "refused: " in content, names.asked) == ("error", True, [])
    assert "is no host" in content or "is no web address" in content
    with pytest.raises(ToolDefinitionError, match="is no host"):
        http_get([host])
    assert rules[0].covers(host, 80)  # the list alone would let it pass


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.9.9.9", "loopback"),
        ("10.0.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "shared (carrier-grade NAT)"),
        ("169.254.169.254", "link-local"),
        ("224.0.0.1", "multicast"),
        ("0.0.0.0", "unspecified"),
        ("255.255.255.255", "reserved"),
        ("198.18.0.1", "reserved"),
        ("203.0.113.5", "documentation"),
        ("::1", "loopback"),
        ("::", "unspecified"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("::127.0.0.1", "reserved"),
        ("64:ff9b::7f00:1", "NAT64"),
        ("64:ff9b:1::1", "NAT64"),
        ("2002:7f00:1::", "6to4"),
        ("2001:0:4136:e378::1", "Teredo"),
        ("fc00::1", "private"),
        ("fd12:3456::1", "private"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "no plain IP address"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "documentation"),
        ("4000::1", "reserved"),
        ("8.8.8.8", None),
        ("100.128.0.1", None),
        ("2606:4700::1111", None),
    ],
)
def test_only_public_addresses_are_connected_to(site: Site, address: str, kind: str | None) -> None:
    assert kind_of(address) == kind
    if kind is not None:
        status, content = get(named(site, Names(docs_test=[address])), at(site, "/", "docs.test"))
        told = f"InvalidInput: refused: docs.test has the address {address}, which is not public but {kind}"
        assert (status, content) == ("error", told)


@pytest.mark.parametrize("literal", ["[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "10.0.0.1"])
def test_an_allowed_literal_address_is_checked_as_well(literal: str) -> None:
    status, content = get(http_get([literal]), f"http://{literal}/")
    assert (status, "is not public but" in content) == ("error", True)


def test_one_address_that_is_not_public_refuses_the_name(site: Site) -> None:
    names = Names(docs_test=["8.8.8.8", "127.0.0.1"])
    status, content = get(named(site, names), at(site, "/", "docs.test"))
    assert (status, "127.0.0.1, which is not public" in content, site.asked) == ("error", True, [])


@pytest.mark.parametrize("address", ["169.254.169.254", "224.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"])
def test_the_opt_in_is_for_private_addresses_and_no_others(site: Site, address: str) -> None:
    names = Names(docs_test=[address])
    assert "not public" in get(named(site, names, "docs.test"), at(site, "/", "docs.test"))[1]


def test_a_name_is_resolved_once_and_its_checked_address_connected_to(site: Site) -> None:
    site.put("/")
    names = Names(docs_test=[["127.0.0.1"], ["10.255.255.1"]])
    status, _ = get(named(site, names, "docs.test"), at(site, "/", "docs.test"))
    assert (status, names.asked) == ("success", ["docs.test"])
    assert site.asked[0][1]["Host"] == f"docs.test:{site.port}"


def test_a_rebound_name_is_refused_at_the_next_hop(site: Site) -> None:
    site.redirect("/", "/again")
    names = Names(docs_test=[["127.0.0.1"], ["169.254.169.254"]])
    status, content = get(named(site, names, "docs.test"), at(site, "/", "docs.test"))
    assert (status, "169.254.169.254" in content, len(site.asked)) == ("error", True, 1)


def test_the_next_address_is_tried_where_one_does_not_answer(site: Site) -> None:
    site.put("/")
    names = Names(docs_test=["127.0.0.2", "127.0.0.1"])  # the site listens at the second alone
    assert get(named(site, names, "docs.test"), at(site, "/", "docs.test"))[0] == "success"


def test_a_name_that_is_not_found_is_an_error(site: Site) -> None:
    status, content = get(named(site, Names()), at(site, "/", "docs.test"))
    assert (status, content) == ("error", "ConnectionError: the name docs.test was not found: no such name")


# -- redirects -------------------------------------------------------------------------------------


def test_a_redirect_is_followed_and_the_last_address_told(site: Site) -> None:
    site.redirect("/", "b?c", status=307)
    site.put("/b?c", b"here")
    assert get(local(site), at(site, "/"))[1].startswith(at(site, "/b?c") + "\n200 OK")


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("http://inner.test:PORT/", "inner.test has the address 127.0.0.1, which is not public"),
        ("http://127.0.0.1:PORT/", "127.0.0.1 at port PORT is not allowed"),
        ("//other.example/", "other.example at port 80 is not allowed"),
        ("file:///etc/passwd", "only http:// and https://"),
        ("http://a:b@docs.test:PORT/", "user name or password"),
        ("http://[::1/", "Invalid URL in location header"),
    ],
)
def test_every_hop_is_checked(site: Site, location: str, why: str) -> None:
    site.redirect("/", location.replace("PORT", str(site.port)))
    names = Names(docs_test=["127.0.0.1"], inner_test=["127.0.0.1"])
    status, content = get(named(site, names, "docs.test"), at(site, "/", "docs.test"))
    assert (status, why.replace("PORT", str(site.port)) in content) == ("error", True), content
    assert len(site.asked) == 1


def test_five_redirects_are_followed_and_no_more(site: Site) -> None:
    for step in range(6):
        site.redirect(f"/{step}", f"/{step + 1}")
    site.put("/6", b"the end")
    assert get(local(site), at(site, "/1"))[0] == "success"
    assert get(local(site), at(site, "/0"))[1] == "InvalidInput: refused: more than 5 redirects"


def test_the_projects_headers_do_not_follow_to_another_origin_nor_back(site: Site) -> None:
    site.redirect("/1", "/2")
    site.redirect("/2", at(site, "/3", "other.test"))
    site.redirect("/3", at(site, "/4", "docs.test"))
    site.redirect("/4", "/5")
    site.put("/5")
    names = Names(docs_test=["127.0.0.1"], other_test=["127.0.0.1"])
    tool = named(site, names, "docs.test", "other.test", headers={"X-Key": "s3cret"})
    assert get(tool, at(site, "/1", "docs.test"))[0] == "success"
    assert [headers.get("X-Key") for _, headers in site.asked] == ["s3cret", "s3cret", None, None, None]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://docs.test/", "s3cret"),
        ("http://docs.test/", None),
        ("http://inner.test/", "s3cret"),
        ("http://docs.test./", None),
    ],
)
def test_the_projects_headers_go_over_https_or_to_private_hosts_only(url: str, sent: str | None) -> None:
    settings = {"allowed_hosts": ["*.test"], "headers": {"x-key": "s3cret", "user-agent": "ours"}}
    tool = HttpGet(settings, ["inner.test"])
    headers = tool.headers_for(httpx.URL(url), "key", trusted=True)
    assert headers.get("X-Key") == sent
    assert headers.get_list("User-Agent") == ["ours" if sent else "agency"]
    assert headers["Host"] == httpx.URL(url).host.removesuffix(".")
    assert "X-Key" not in tool.headers_for(httpx.URL(url), "key", trusted=False)


def test_cookies_of_one_answer_are_not_sent_with_the_next_request(site: Site) -> None:
    site.put("/", status=302, Location="/next", Set_Cookie="session=1")
    site.put("/next")
    get(local(site), at(site, "/"))
    assert "Cookie" not in site.asked[1][1]


# -- https -----------------------------------------------------------------------------------------


@pytest.fixture
def secure(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site with a certificate for secure.test, which the process trusts."""
    made = Site()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(IDENTITY)
    made.socket = context.wrap_socket(made.socket, server_side=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(IDENTITY))
    made.put("/", b"safe")
    yield from serve(made)


def test_a_certificate_is_checked_for_the_name_and_not_the_address(secure: Site) -> None:
    names = Names(secure_test=["127.0.0.1"], other_test=["127.0.0.1"])
    tool = named(secure, names, "secure.test", "other.test")
    assert get(tool, f"https://secure.test:{secure.port}/")[0] == "success"
    status, content = get(tool, f"https://other.test:{secure.port}/")
    assert (status, "not valid for 'other.test'" in content) == ("error", True)
    assert [headers["Host"] for _, headers in secure.asked] == [f"secure.test:{secure.port}"]


# -- declaring -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "allowed_hosts: Field required"),
        ({"allowed_hosts": []}, "allowed_hosts"),
        ({"allowed_hosts": ["*"]}, "'*' is no host"),
        ({"allowed_hosts": ["a.*.test"]}, "is no host"),
        ({"allowed_hosts": ["https://a.test"]}, "is no host"),
        ({"allowed_hosts": ["a.test/path"]}, "is no host"),
        ({"allowed_hosts": ["a.test:0"]}, "is no host"),
        ({"allowed_hosts": ["bücher.test"]}, "other alphabets as xn--"),
        ({"allowed_hosts": ["a.test"], "headers": {"Host": "b.test"}}, "'Host' cannot be set"),
        ({"allowed_hosts": ["a.test"], "headers": {"X-A": "1\r\nX-B: 2"}}, "printable ASCII"),
        ({"allowed_hosts": ["a.test"], "allow_private": ["a.test"]}, "allow_private"),
    ],
)
def test_settings_that_do_not_fit_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        resolve_tools([ToolConfig(HttpGet, settings)])
    assert message in str(raised.value) and "1\r\n" not in str(raised.value)


@pytest.mark.parametrize("host", ["*.test", "a.test:80", "a b"])
def test_private_addresses_are_opened_host_by_host(host: str) -> None:
    with pytest.raises(ToolDefinitionError, match="allow_private"):
        http_get(["a.test"], allow_private=[host])


def test_the_model_is_told_the_allowed_hosts_and_gives_only_an_address() -> None:
    tool = http_get(["Docs.Test", "*.b.test:8080", "[::1]:80"], headers={"X-Key": "s3cret"})
    assert tool.spec.description.endswith("Allowed hosts: docs.test, *.b.test:8080, [::1]:80.")
    assert list(tool.spec.parameters["properties"]) == ["url"]
    assert tool.effect is Effect.READ
    assert "s3cret" not in repr(HttpGet({"allowed_hosts": ["a.test"], "headers": {"X": "s3cret"}}).settings)


@pytest.mark.parametrize(
    ("rule", "host", "port", "covered"),
    [
        ("a.test", "a.test", 80, True),
        ("a.test", "a.test", 443, True),
        ("a.test:8080", "a.test", 8080, True),
        ("a.test:8080", "a.test", 80, False),
        ("*.a.test", "b.a.test", 443, True),
        ("*.a.test", "c.b.a.test", 443, True),
        ("*.a.test", "a.test", 443, False),
        ("*.a.test", "ba.test", 443, False),
        ("A.test.", "a.test", 80, True),
        ("[0:0:0::1]", "::1", 80, True),
    ],
)
def test_a_rule_covers_a_host_and_ports(rule: str, host: str, port: int, covered: bool) -> None:
    assert HostRule.parse(rule).covers(host, port) is covered


def test_a_gate_resolves_with_the_systems_resolver_unless_told_otherwise() -> None:
    import asyncio

    gate = Gate((HostRule("localhost"),), frozenset({"localhost"}))
    assert set(asyncio.run(gate.addresses("localhost", 80))) <= {"127.0.0.1", "::1"}


DECLARED = ToolConfig(
    HttpGet,
    HttpGetSettings(
        allowed_hosts=["*.example.org", "example.com"], timeout=5, headers={"X-Key": SecretStr("k")}
    ),
)


@pytest.mark.parametrize(
    "stored",
    [
        {"allowed_hosts": ["evil.example"]},
        {"allowed_hosts": ["example.org"]},
        {"allowed_hosts": ["a.example.org:8080"]},
        {"allowed_hosts": ["*.example.com"]},
        {"allowed_hosts": ["*.org"]},
        {"timeout": 6},
    ],
)
def test_settings_stored_for_an_agent_cannot_widen_what_the_project_allows(stored: dict[str, Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="the project allows"):
        resolve_tools([DECLARED], settings={"http_get": stored})


def test_settings_stored_for_an_agent_may_narrow_what_the_project_allows() -> None:
    stored = {"allowed_hosts": ["*.b.example.org", "example.com:443"], "timeout": 2, "max_bytes": 300_000}
    (made,) = resolve_tools([DECLARED], settings={"http_get": stored})
    assert "Allowed hosts: *.b.example.org, example.com:443." in made.spec.description
    tool: Any = made.function.__self__
    assert tool.settings.headers["X-Key"].get_secret_value() == "k"


def test_where_the_project_declares_no_hosts_the_stored_ones_count() -> None:
    (made,) = resolve_tools([HttpGet], settings={"http_get": {"allowed_hosts": ["example.net"]}})
    assert "example.net" in made.spec.description
