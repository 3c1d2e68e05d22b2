"""Models that a run asks beside its agent, such as a judge: journaled, stoppable and counted all the same.

What they say is on record but no part of the conversation. Knows neither judges nor supervisors.
"""

import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

from agency.agent.context import ExecutionContext
from agency.agent.events import Event, EventError, Message, Usage
from agency.agent.journal import never_stop
from agency.agent.llm import LlmClient, LlmRequest, LlmResponse
from agency.agent.named import as_client
from agency.agent.record import Record
from agency.agent.text import clean
from agency.agent.thinking import Failure, answer_aside, note, pause, selected
from agency.errors import ModelError, ModelOutputInvalid, ModelUnavailable, RunReleased

if TYPE_CHECKING:
    from agency.agent.agent import Agent

ClientFor = Callable[[LlmClient | str], LlmClient]
_INVALID = "model_output_invalid"


class Beside:
    """Gives clients whose calls belong to the run of `agent` over `context`, for one attempt of it.

    Calls are known by the name of who asks and their number, so a run that is started anew over its journal
    gets the recorded answers as long as it asks in the same order. `check` is called before each call that is
    not on record, and raises to prevent it.
    """

    def __init__(
        self,
        agent: "Agent",
        context: ExecutionContext,
        client_for: ClientFor = as_client,
        check: Callable[[], None] = never_stop,
    ) -> None:
        self.agent = agent
        self.context = context
        self.check = check
        self._client_for = client_for
        self._asked: Counter[str] = Counter()

    def client(self, model: LlmClient | str, name: str) -> "BesideClient":
        """A client for `name` (who asks, for the record), on `model`: a client or a `"provider:model"`."""
        return BesideClient(self, self._client_for(model), name)

    def next_key(self, name: str) -> str:
        self._asked[name] += 1
        return f"beside:{name}:{self._asked[name]}:model"


class BesideClient:
    """An `LlmClient` over another one.

    Where the model is not available it is asked as often as the agent would ask its own; then the run is
    given back (`RunReleased`), to be tried again later. Other `ModelError`s are recorded and raised.
    """

    def __init__(self, beside: Beside, client: LlmClient, name: str) -> None:
        self.client = client
        self.name = name
        self._beside = beside

    @property
    def model_name(self) -> str | None:
        return getattr(self.client, "model_name", None)

    @property
    def takes_probes(self) -> bool:
        return getattr(self.client, "takes_probes", False)

    def generate(self, request: LlmRequest) -> LlmResponse:
        agent = self._beside.agent
        record = Record(self._beside.context, agent.name, agent.scope.journal, agent.hooks)
        key = self._beside.next_key(self.name)
        event = record.replay(key) or self._ask(record, key, request)
        if event.error is not None:
            raise ModelOutputInvalid(event.error.message, event.text)
        reason = (event.call or {}).get("finish_reason")
        return LlmResponse(list(event.content), event.usage, reason, (event.call or {}).get("model"))

    def _ask(self, record: Record, key: str, request: LlmRequest) -> Event:
        self._beside.check()
        agent, failures = self._beside.agent, 0
        while True:
            started = time.perf_counter()
            try:
                response = answer_aside(agent, self.client, request)
                return record.write(key, self._event(record, request, response, started))
            except ModelOutputInvalid as exc:
                return record.write(key, self._unreadable(record, request, exc, started))
            except ModelUnavailable as exc:
                failure, failures = self._note(record, exc), failures + 1
                if failures > agent.model_retries:
                    why = f"the model of {self.name} could not be reached: {failure.message}"
                    raise RunReleased(why, failure.retry_after or 0.0) from exc
                pause(agent, failure.retry_after, failures)
            except ModelError as exc:
                self._note(record, exc)
                raise

    def _note(self, record: Record, error: ModelError) -> Failure:
        return note(record, error, call={"beside": self.name})

    def _event(self, record: Record, request: LlmRequest, response: LlmResponse, started: float) -> Event:
        text = Message(role="assistant", content=clean(response.text))
        reason = response.finish_reason
        call = self._call(record, request, response.model, reason, started)
        return record.event([text], usage=response.usage or Usage(model_calls=1), call=call)

    def _unreadable(
        self, record: Record, request: LlmRequest, error: ModelOutputInvalid, started: float
    ) -> Event:
        """An answer that the client could not read; it was paid for, so it is the answer of this call."""
        said = [Message(role="assistant", content=clean(error.raw))] if error.raw else []
        return record.event(
            said,
            usage=Usage(model_calls=1),
            error=EventError(code=_INVALID, message=clean(str(error)) or _INVALID),
            call=self._call(record, request, None, "error", started),
        )

    def _call(
        self, record: Record, request: LlmRequest, model: str | None, reason: str | None, started: float
    ) -> dict[str, object]:
        return {
            "beside": self.name,
            "model": model or getattr(self.client, "model_name", None),
            "finish_reason": reason,
            "duration": round(time.perf_counter() - started, 6),
            "request": selected(request, record.history),
        }


present: ContextVar[Beside | None] = ContextVar("beside", default=None)
"""Set while code runs that may ask models within a run, such as a validator."""
