"""A proxy before PostgreSQL that cuts a connection at a chosen round trip, before or after the server had it.

Clients reach it as a unix socket in a directory, like the server itself. It understands just enough of the
protocol (version 3, no encryption, which unix sockets never have) to know where a round trip ends.
"""

import contextlib
import select
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

_NAME = ".s.PGSQL.5432"
_CHUNK = 65_536
_WAITS_FOR_ANSWER = b"QS"
"""Messages after which a client waits: a simple query, and Sync."""
_WARNING = b"SWARNING\0VWARNING\0C57P02\0Mterminating connection because of a crash\0\0"
"""What a server that ends at once says to each session: a notice, and no answer to anything."""
_READY = b"Z\x00\x00\x00\x05"


class Proxy:
    """Connect to `host` instead of `server`, the directory of the server's socket.

    `cut()` arms it, once; `struck` counts the connections that were cut.
    """

    def __init__(self, server: str, home: Path) -> None:
        self.host = str(home)
        self.struck = 0
        self._server = f"{server}/{_NAME}"
        self._guard = threading.Lock()
        self._clients: list[socket.socket] = []
        self._left = 0
        self._arrives = True
        self._only = b""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self.host}/{_NAME}")
        Path(f"{self.host}/{_NAME}").chmod(0o777)
        self._listener.listen(64)
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def cut(self, nth: int = 1, *, arrives: bool, only: bytes = b"") -> None:
        """Cut the connection of the n-th round trip from now whose messages hold `only`.

        If it `arrives`, the server has done what was asked and the client never hears of it; else the
        server never hears of it.
        """
        with self._guard:
            self._left, self._arrives, self._only = nth, arrives, only

    def crash(self) -> None:
        """End all connections as a server does that is stopped at once."""
        for client in self._clients:
            with contextlib.suppress(OSError):
                client.sendall(b"N" + struct.pack("!I", len(_WARNING) + 4) + _WARNING)
                client.shutdown(socket.SHUT_RDWR)
        self._clients.clear()

    def spare(self) -> None:
        """Take back a cut that has not struck."""
        with self._guard:
            self._left = 0

    def close(self) -> None:
        """Accept no more; connections that are open go on."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                threading.Thread(target=self._serve, args=(client,), name="proxied", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        with client, server, contextlib.suppress(OSError):
            server.connect(self._server)
            said = _Messages()
            while True:
                readable, _, _ = select.select([client, server], [], [])
                if server in readable:
                    if not (answer := server.recv(_CHUNK)):
                        return
                    client.sendall(answer)
                if client in readable:
                    if not (question := client.recv(_CHUNK)):
                        return
                    said.feed(question)
                    for trip, whole in said.trips():
                        if not self._pass_on(trip, whole, server):
                            return

    def _pass_on(self, trip: bytes, whole: bool, server: socket.socket) -> bool:
        """Send one round trip's messages to the server; `False` if the connection is cut here."""
        cut = whole and self._is_struck(trip)
        if cut and not self._arrives:
            return False
        server.sendall(trip)
        if not cut:
            return True
        answer = b""
        while answer[-6:-1] != _READY and (more := server.recv(_CHUNK)):
            answer += more
        return False

    def _is_struck(self, trip: bytes) -> bool:
        with self._guard:
            if not self._left or self._only not in trip:
                return False
            self._left -= 1
            self.struck += not self._left
            return not self._left


class _Messages:
    """What a client has said, parted into round trips."""

    def __init__(self) -> None:
        self._buffer = b""
        self._begun = False

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def trips(self) -> Iterator[tuple[bytes, bool]]:
        """Each complete round trip with `True`, and the start of the session or its end with `False`."""
        place = 0
        while (end := self._end_of_message(place)) is not None:
            kind = self._buffer[place : place + 1] if self._begun else b""
            place = end
            if kind and kind not in _WAITS_FOR_ANSWER + b"pX":
                continue
            self._begun = True
            trip, self._buffer, place = self._buffer[:end], self._buffer[end:], 0
            yield trip, kind != b"" and kind in _WAITS_FOR_ANSWER

    def _end_of_message(self, place: int) -> int | None:
        """Where the message at `place` ends, if all of it is here; the first has no type byte."""
        head = place + self._begun
        if len(self._buffer) < head + 4:
            return None
        end = head + struct.unpack("!I", self._buffer[head : head + 4])[0]
        return end if len(self._buffer) >= end else None


@contextlib.contextmanager
def before(server: str) -> Iterator[Proxy]:
    """A proxy before the server whose socket is in the directory `server`."""
    with tempfile.TemporaryDirectory(prefix="agency-proxy-", dir="/tmp") as home:
        Path(home).chmod(0o755)
        proxy = Proxy(server, Path(home))
        try:
            yield proxy
        finally:
            proxy.close()
