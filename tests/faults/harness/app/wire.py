"""HTTP to the provider and the effect server: one connection a thread, and a wait that can be stopped."""

import http.client
import os
import select
import threading
import time
from collections.abc import Mapping

from agency.agent.stopping import stop_signal
from agency.errors import RunCancelled

CALLER = "X-Caller"
_POLL = 0.1
_local = threading.local()


class Unanswered(OSError):
    """No answer came within the time."""


def post(
    address: str, path: str, body: bytes, headers: Mapping[str, str], timeout: float = 30.0
) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers and body; `OSError` where nothing came, `RunCancelled` where the run was stopped."""
    connection = _connection(address)
    try:
        connection.request("POST", path, body, {CALLER: str(os.getpid()), **headers})
        _await(connection.sock, timeout)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    except http.client.HTTPException as exc:
        _forget(address)
        raise OSError(f"{type(exc).__name__}: {exc}") from exc
    except BaseException:
        _forget(address)
        raise


def _await(sock: object, timeout: float) -> None:
    until = time.monotonic() + timeout
    stopped = stop_signal.get()
    while not select.select([sock], [], [], _POLL)[0]:
        if stopped is not None and stopped():
            raise RunCancelled("the run was stopped while it waited for an answer")
        if time.monotonic() > until:
            raise Unanswered(f"no answer within {timeout:g} s")


def _connection(address: str) -> http.client.HTTPConnection:
    known: dict[str, http.client.HTTPConnection] = _local.__dict__.setdefault("known", {})
    if address not in known:
        known[address] = http.client.HTTPConnection(address, timeout=30.0)
    return known[address]


def _forget(address: str) -> None:
    _local.__dict__.setdefault("known", {}).pop(address).close()
