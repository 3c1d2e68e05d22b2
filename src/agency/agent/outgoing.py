"""Which places of the net a tool may reach: hosts from a list, and behind them public addresses only.

A name is resolved once; the addresses that were checked are the ones to connect to. Knows no HTTP client.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from agency.errors import InvalidInput

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""From a name and a port to the addresses as text; raises `OSError` if there are none."""

USUAL_PORTS = (80, 443)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_RULE = re.compile(
    r"(?P<wild>\*\.)?(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[^\[\]:/@*]+))(?::(?P<port>\d{1,5}))?"
)
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_KINDS = [
    (ip_network(network), kind)
    for kind, networks in {
        "loopback": "127.0.0.0/8 ::1/128",
        "private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
        "shared (carrier-grade NAT)": "100.64.0.0/10",
        "link-local": "169.254.0.0/16 fe80::/10",
        "site-local": "fec0::/10",
        "multicast": "224.0.0.0/4 ff00::/8",
        "unspecified": "0.0.0.0/8 ::/128",
        "documentation": "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
        "IPv4-mapped": "::ffff:0:0/96",
        "NAT64": "64:ff9b::/96 64:ff9b:1::/48",
        "6to4": "2002::/16 192.88.99.0/24",
        "Teredo": "2001::/32",
        "reserved": "192.0.0.0/24 198.18.0.0/15 240.0.0.0/4 2001::/23",
    }.items()
    for network in networks.split()
]
_ON_REQUEST = {"loopback", "private", "shared (carrier-grade NAT)"}
_UNICAST = ip_network("2000::/3")


@dataclass(frozen=True, slots=True)
class HostRule:
    """An entry of a list of hosts: `example.com`, `*.example.com` for what is below it; a port may follow."""

    host: str
    port: int | None = None
    below: bool = False

    @classmethod
    def parse(cls, text: str) -> "HostRule":
        """The rule that is written so; `ValueError` says how to write one."""
        found = _RULE.fullmatch(text.strip().lower())
        host = plain(found["ipv6"] or found["name"]) if found else ""
        port = int(found["port"]) if found and found["port"] else None
        if found is None or not _is_host(host) or not (port is None or 0 < port < 65536):
            raise ValueError(
                f"{text!r} is no host; write example.com, *.example.com, example.com:8080, an IP address "
                "([::1] for IPv6), without scheme and path, other alphabets as xn--"
            )
        return cls(host, port, bool(found["wild"]))

    def covers(self, host: str, port: int) -> bool:
        ports = USUAL_PORTS if self.port is None else (self.port,)
        same = host.endswith(f".{self.host}") if self.below else host == self.host
        return same and port in ports

    def includes(self, other: "HostRule") -> bool:
        """Whether this rule allows all that the other does."""
        ports = {*(USUAL_PORTS if self.port is None else (self.port,))}
        if not ports >= {*(USUAL_PORTS if other.port is None else (other.port,))}:
            return False
        below = self.below and other.host.endswith(f".{self.host}")
        return below or (self.host == other.host and self.below == other.below)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'*.' if self.below else ''}{host}{'' if self.port is None else f':{self.port}'}"


async def resolve(host: str, port: int) -> list[str]:
    """What the system's resolver says, off the event loop."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True)
class Gate:
    """Lets pass what `rules` allow; hosts in `private` may have private, shared and loopback addresses."""

    rules: tuple[HostRule, ...]
    private: frozenset[str] = frozenset()
    resolve: Resolve = field(default=resolve)

    async def addresses(self, host: str, port: int) -> list[str]:
        """The checked addresses of an allowed host; `InvalidInput` says what is refused and why."""
        self._check_host(host, port)
        literal = _ip(host)
        found = [str(literal)] if literal else await self._resolved(host, port)
        for address in found:
            kind = kind_of(address)
            if kind is not None and not (host in self.private and kind in _ON_REQUEST):
                where = "is" if literal else f"has the address {address}, which is"
                raise InvalidInput(f"refused: {host} {where} not public but {kind}")
        return found

    def _check_host(self, host: str, port: int) -> None:
        if not _is_host(host):
            raise InvalidInput(
                f"refused: {host!r} is no host; write a name, or an address in its usual form (192.0.2.1)"
            )
        if not any(rule.covers(host, port) for rule in self.rules):
            raise InvalidInput(
                f"refused: {host} at port {port} is not allowed; allowed are {listed(self.rules)}"
            )

    async def _resolved(self, host: str, port: int) -> list[str]:
        try:
            found = await self.resolve(host, port)
        except (OSError, UnicodeError) as exc:
            raise ConnectionError(f"the name {host} was not found: {exc}") from None
        if not found:
            raise ConnectionError(f"the name {host} has no address")
        return found


def listed(rules: Iterable[HostRule]) -> str:
    return ", ".join(str(rule) for rule in rules)


def kind_of(address: str) -> str | None:
    """Why an address is not public, in a word; `None` if it is."""
    ip = _ip(address)
    if ip is None:
        return "no plain IP address"
    for network, kind in _KINDS:
        if ip in network:
            return kind
    if not ip.is_global or (ip.version == 6 and ip not in _UNICAST):
        return "reserved"
    return None


def plain(host: str) -> str:
    """A host as it is compared: small letters, no final dot, an address in its shortest form."""
    lower = host.lower().removesuffix(".")
    return str(_ip(lower) or lower)


def _is_host(host: str) -> bool:
    """A name or an address in its usual form, which `2130706433` and `0x7f.1` are not to us."""
    if _ip(host) is not None:
        return True
    return bool(_NAME.fullmatch(host)) and not _NUMBER.fullmatch(host.rpartition(".")[2])


def _ip(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None
