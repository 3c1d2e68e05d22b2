"""The database and broker of a run: fresh ones, which a nemesis may restart."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from tests import servers
from tests.faults.harness.brokers import RabbitMq, Valkey, broker
from tests.faults.proxy import Proxy, before


@dataclass(slots=True)
class Backend:
    """`database` is the name that Django needs; `environ` chooses its kind for the processes.

    `proxied` chooses the same database through `proxy`, which can cut connections.
    """

    database: str
    environ: dict[str, str]
    broker: Valkey | RabbitMq | None = None
    postgres: servers.Server | None = None
    proxy: Proxy | None = None
    proxied: dict[str, str] = field(default_factory=dict)

    @property
    def broker_url(self) -> str | None:
        return None if self.broker is None else self.broker.url

    def queued(self, queue: str) -> int:
        """How many messages wait; 0 without a broker, or while it is away."""
        if self.broker is None or not self.broker.server.running:
            return 0
        return self.broker.queued(queue)


@contextlib.contextmanager
def backend(name: str, home: Path, *, with_proxy: bool = False) -> Iterator[Backend]:
    """Start the servers of a backend, named as in `spec.BACKENDS`; `Unavailable` says what is missing."""
    database, _, kind = name.partition("+")
    with contextlib.ExitStack() as stack:
        made = _sqlite(home) if database == "sqlite" else _postgres(stack)
        if with_proxy:
            _through_proxy(made, stack)
        if kind:
            made.broker = stack.enter_context(broker(kind))
        yield made


def _sqlite(home: Path) -> Backend:
    return Backend(str(home / "database.sqlite3"), {"AGENCY_TEST_DB": "sqlite"})


def _through_proxy(made: Backend, stack: contextlib.ExitStack) -> None:
    """Put a proxy before the database."""
    url = urlsplit(made.environ["AGENCY_TEST_PG_URL"])
    made.proxy = stack.enter_context(before(unquote(url.hostname or "")))
    through = f"postgresql://postgres@{quote(made.proxy.host, safe='')}{url.path}"
    made.proxied = {"AGENCY_TEST_PG_URL": through}


def _postgres(stack: contextlib.ExitStack) -> Backend:
    server = stack.enter_context(servers.postgres_server(durable=True))
    environ = {"AGENCY_TEST_DB": "postgres", "AGENCY_TEST_PG_URL": server.url}
    return Backend("postgres", environ, postgres=server)
