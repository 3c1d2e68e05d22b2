"""Turns a database URL into Django's settings, with the options that durability needs."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from agency.errors import ConfigurationError

SQLITE_OPTIONS: dict[str, Any] = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
}
"""`synchronous` FULL: what was committed must survive the power as well as the process."""

POSTGRESQL_OPTIONS: dict[str, Any] = {
    "options": "-c statement_timeout=30s -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""No statement, lock or open transaction holds up others for long, and a server that vanishes without a word
is noticed before a lease ends, not after a quarter of an hour. A pooler that takes no `options` needs
`?options=` at the end of the URL.
"""

SPARE_CONNECTIONS = 5
"""Beside the worker's threads: the beat, the poll thread, the queue, the broadcaster and one for luck."""


def database(url: str, default: Path, threads: int) -> dict[str, Any]:
    """Settings for `sqlite:///path` or `postgresql://user:password@host:port/name?option=value`.

    An empty `url` means the SQLite file `default`. `threads` sizes PostgreSQL's connection pool.
    """
    if not url:
        return _sqlite(str(default))
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return _sqlite(unquote(parts.path.removeprefix("/")) or str(default))
    if parts.scheme in {"postgres", "postgresql"}:
        return _postgresql(url, threads)
    raise ConfigurationError(
        f"AGENCY_DATABASE_URL begins with {parts.scheme or url.split(':')[0]!r}. "
        "Use sqlite:///path/to/file or postgresql://user:password@host/name."
    )


def _sqlite(name: str) -> dict[str, Any]:
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": name, "OPTIONS": dict(SQLITE_OPTIONS)}


def _postgresql(url: str, threads: int) -> dict[str, Any]:
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    options = {name: value for name, value in {**POSTGRESQL_OPTIONS, **given}.items() if value != ""}
    host = options.pop("host", None) or _host(parts.netloc)
    if not parts.path.strip("/"):
        raise ConfigurationError(
            "AGENCY_DATABASE_URL names no database: postgresql://user:password@host/name."
        )
    options["pool"] = {"min_size": 0, "max_size": threads + SPARE_CONNECTIONS, "timeout": 10}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "OPTIONS": options,
    }


def _host(netloc: str) -> str:
    """As written: `urlsplit` lower-cases host names, but a socket's directory may have capitals."""
    address = netloc.rpartition("@")[2]
    if not address.startswith("["):
        address = address.partition(":")[0]
    return unquote(address.partition("]")[0].lstrip("["))
