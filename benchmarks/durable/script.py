"""The texts of a journaled step, and how the size of a database is asked. Standard library only."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ANSWER = "The next number is added now, as was asked, and the sum so far is noted. " * 14
RESULT = "Added. The sum is larger than before and nothing else has changed since. " * 14
DONE = "All numbers are added."
SIZE = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r'"
"""In bytes, of all tables with their indexes and what is kept out of line."""


def sqlite_path(url: str) -> str:
    return unquote(urlsplit(url).path)[1:]


def sqlite_size(connection: Any, path: str) -> int:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(path).stat().st_size
