"""Takes an answer piece by piece from a client that can stream, and gives the pieces to who watches.

The stream is read on a thread of its own, so that a client that stalls holds nobody up: who waits
for a piece waits no longer than the deadline for one, and can be stopped.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

from agency.agent.llm import Delta, LlmResponse
from agency.errors import ModelError, ModelUnavailable, RunCancelled

FIRST_PIECE = 300.0
NEXT_PIECE = 120.0
WHOLE = 1800.0
POLL = 0.1
RESTART = Delta("restart")
WAITING = Delta("waiting")
NOTHING_YET = Delta("text")

Stream = Callable[[], Iterator[Delta | LlmResponse]]


class Ended:
    """A stream is over, or broke off with `error`."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def collect(
    stream: Stream,
    on_delta: Callable[[Delta], None],
    settings: dict[str, Any],
    is_cancelled: Callable[[], bool],
) -> LlmResponse:
    """The whole answer, after its deltas went to `on_delta`; a broken one takes them back with a restart.

    Waits `settings["timeout"]` seconds for the first piece (300), `chunk_timeout` for each other (120) and
    `stream_timeout` for all of them (1,800); each from the moment at which the client is no longer waiting
    for its turn at the model.
    """
    pieces: queue.SimpleQueue[Delta | LlmResponse | Ended] = queue.SimpleQueue()
    gone = threading.Event()
    _start(stream, pieces, gone)
    whole = float(settings.get("stream_timeout") or WHOLE)
    over = time.monotonic() + whole
    deadline = float(settings.get("timeout") or FIRST_PIECE)
    told = False
    try:
        while True:
            piece = _wait(pieces, deadline, is_cancelled)
            if isinstance(piece, LlmResponse):
                return piece
            if isinstance(piece, Ended):
                raise piece.error or ModelUnavailable("the stream ended without an answer")
            if piece == WAITING:
                over = time.monotonic() + whole
                continue
            if time.monotonic() >= over:
                raise ModelUnavailable(f"the stream was not over within {whole:g} s")
            deadline = float(settings.get("chunk_timeout") or NEXT_PIECE)
            if piece != NOTHING_YET:
                on_delta(piece)
                told = True
    except ModelError:
        if told:
            on_delta(RESTART)
        raise
    finally:
        gone.set()


def _start(
    stream: Stream, pieces: "queue.SimpleQueue[Delta | LlmResponse | Ended]", gone: threading.Event
) -> None:
    variables = copy_context()

    def read() -> None:
        try:
            for piece in stream():
                pieces.put(piece)
                if gone.is_set():
                    break
        except BaseException as exc:
            pieces.put(Ended(exc))
        else:
            pieces.put(Ended())

    threading.Thread(target=variables.run, args=(read,), name="model-stream", daemon=True).start()


def _wait(
    pieces: "queue.SimpleQueue[Delta | LlmResponse | Ended]",
    deadline: float,
    is_cancelled: Callable[[], bool],
) -> Delta | LlmResponse | Ended:
    until = time.monotonic() + deadline
    while not is_cancelled():
        try:
            return pieces.get(timeout=max(0.0, min(POLL, until - time.monotonic())))
        except queue.Empty:
            if time.monotonic() >= until:
                raise ModelUnavailable(f"the stream stalled: nothing came for {deadline:g} s") from None
    raise RunCancelled("cancelled while waiting for an answer")
