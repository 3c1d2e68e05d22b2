"""What the model calls of a tool cost, counted for the tool call in whose course they are made."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from agency.agent.events import Usage
from agency.agent.llm import LlmClient, LlmRequest, LlmResponse
from agency.errors import ModelError


class Tally:
    """The sum of one tool call. A tool may ask from any thread that has the call's context variables."""

    def __init__(self) -> None:
        self._total: Usage | None = None
        self._lock = threading.Lock()

    @property
    def total(self) -> Usage | None:
        """`None` while nothing was asked."""
        return self._total

    def add(self, usage: Usage | None) -> None:
        """Count one model call; an answer that tells no usage is one all the same."""
        spent = usage or Usage()
        if not spent.model_calls:
            spent = spent.model_copy(update={"model_calls": 1})
        with self._lock:
            self._total = spent if self._total is None else self._total + spent


_present: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def counting(tally: Tally) -> Generator[None]:
    """Count for `tally` what tools ask their models meanwhile."""
    token = _present.set(tally)
    try:
        yield
    finally:
        _present.reset(token)


class CountedClient:
    """A tool's client: the client itself, but for what its answers cost, which the present tally is told."""

    def __init__(self, client: LlmClient) -> None:
        self.client = client

    def generate(self, request: LlmRequest) -> LlmResponse:
        tally = _present.get()
        try:
            response = self.client.generate(request)
        except ModelError:  # a call all the same, and perhaps one that was paid for
            if tally is not None:
                tally.add(None)
            raise
        if tally is not None:
            tally.add(response.usage)
        return response

    @property
    def stream(self) -> Any:
        """The client's own `stream`, counted; `None` if it has none."""
        stream = getattr(self.client, "stream", None)
        if stream is None:
            return None

        def counted(request: LlmRequest) -> Generator[Any]:
            return _counted(stream(request))

        return counted

    def __getattr__(self, name: str) -> Any:
        if name == "client":  # not set yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self.client, name)


def _counted(pieces: Any) -> Generator[Any]:
    tally = _present.get()
    for piece in pieces:
        if tally is not None and isinstance(piece, LlmResponse):
            tally.add(piece.usage)
        yield piece
