"""A client that asks its provider's gate before each call and tells it how the call went.

Knows the gate and the project's time limits; of the model it knows only the client that it wraps.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from django.db import connections

from agency.agent.llm import Delta, LlmClient, LlmRequest, LlmResponse
from agency.agent.stopping import stop_signal
from agency.errors import ModelUnavailable, RunCancelled, RunReleased
from agency.execution.claims import database
from agency.runtime import conf, gate
from agency.runtime.gate_rules import Admitted, Refused

_POLL = 0.05


class GateShut(RunReleased):
    """The provider is left alone for `delay` seconds; that is no failure of the run or its model."""


class GatedClient:
    """`client`, behind the gate of `provider`. What else the client has, as `output_mode`, is its own."""

    def __init__(self, client: LlmClient, provider: str) -> None:
        self._client = client
        self._provider = provider
        self._home = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return self._stream(found) if name == "stream" else found

    def generate(self, request: LlmRequest) -> LlmResponse:
        settings = conf.current()
        limits = {"timeout": settings.MODEL_SECONDS}
        admitted = self._admit()
        try:
            response = self._client.generate(_within(request, limits))
        except ModelUnavailable as exc:
            self._failed(exc, admitted)
            raise
        self._tell(lambda: gate.answered(self._provider, admitted))
        return response

    def _stream(
        self, stream: Callable[[LlmRequest], Iterator[Delta | LlmResponse]]
    ) -> Callable[[LlmRequest], Iterator[Delta | LlmResponse]]:
        def gated(request: LlmRequest) -> Iterator[Delta | LlmResponse]:
            settings = conf.current()
            limits = {
                "timeout": settings.MODEL_FIRST_SECONDS,
                "chunk_timeout": settings.MODEL_CHUNK_SECONDS,
                "stream_timeout": settings.MODEL_SECONDS,
            }
            admitted = self._admit()
            try:
                yield from stream(_within(request, limits))
            except ModelUnavailable as exc:
                self._failed(exc, admitted)
                raise
            self._tell(lambda: gate.answered(self._provider, admitted))

        return gated

    def _admit(self) -> Admitted:
        asked = self._tell(lambda: gate.admit(self._provider))
        if isinstance(asked, Refused):
            raise self._shut(asked.seconds)
        if asked.wait:
            _wait(asked.wait)
            # Those who went before may have learned meanwhile that it is too early.
            left = 0.0 if asked.is_probe else self._tell(lambda: gate.shut_for(self._provider))
            if left:
                raise self._shut(left)
        return asked

    def _shut(self, seconds: float) -> GateShut:
        return GateShut(f"{self._provider} is not asked for {seconds:.1f} s", seconds)

    def _failed(self, error: ModelUnavailable, admitted: Admitted) -> None:
        self._tell(
            lambda: gate.failed(
                self._provider,
                retry_after=error.retry_after,
                is_limit=error.is_limit,
                is_probe=admitted.is_probe,
            )
        )

    def _tell(self, work: Callable[[], Any]) -> Any:
        """Do it, leaving no database connection behind on a thread that was made for one call."""
        try:
            return work()
        finally:
            if threading.get_ident() != self._home:
                connections[database()].close()


def _within(request: LlmRequest, limits: dict[str, float | None]) -> LlmRequest:
    """The request with the project's time limits, where it has none of its own."""
    ours = {name: seconds for name, seconds in limits.items() if seconds is not None}
    return replace(request, settings={**ours, **request.settings}) if ours else request


def _wait(seconds: float) -> None:
    """Keep the pace, and stay stoppable."""
    is_stopped, until = stop_signal.get(), time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if is_stopped is not None and is_stopped():
            raise RunCancelled("cancelled while waiting for the provider")
        time.sleep(min(_POLL, left))
