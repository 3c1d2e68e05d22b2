"""The working memory of a run: its whole event history, steps, state and final result.

It is not the request (a builder selects what the model sees) and never grows service handles.
"""

import json
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from agency.agent.events import Event, new_id
from agency.agent.text import clean_json
from agency.errors import InvalidInput


@dataclass
class ExecutionContext:
    """Everything that happened in an execution, in order.

    `state` is a scratch dictionary for tools and must stay JSON; `final_result` is `None` until
    the turn is done.
    """

    execution_id: str = field(default_factory=new_id)
    events: list[Event] = field(default_factory=list[Event])
    current_step: int = 0
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    final_result: Any = None

    def add_event(self, event: Event) -> None:
        self.events.append(event)

    def increment_step(self) -> None:
        self.current_step += 1

    def check_state(self) -> None:
        """Raise `InvalidInput` naming the first key whose value is not JSON."""
        for key, value in self.state.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as exc:
                raise InvalidInput(f"context.state[{key!r}] is not JSON: {exc}") from exc
            if not _has_text_keys({key: value}):
                raise InvalidInput(f"context.state[{key!r}] is not JSON: a key in it is no text")

    def to_json(self) -> str:
        """The whole context as JSON text, for `from_json` in this or another process.

        Raises `InvalidInput` naming the key of `state`, or `final_result`, if it is not JSON.
        """
        self.check_state()
        try:
            final = to_jsonable_python(self.final_result)
        except PydanticSerializationError as exc:
            raise InvalidInput(f"context.final_result is not JSON: {exc}") from exc
        stored = {
            "version": 1,
            "execution_id": self.execution_id,
            "events": [event.model_dump(mode="json") for event in self.events],
            "current_step": self.current_step,
            "state": clean_json(self.state),
            "final_result": clean_json(final),
        }
        return json.dumps(stored, ensure_ascii=False, allow_nan=False)

    def to_markdown(self) -> str:
        """The whole record as Markdown, to be pasted into an issue; long texts are cut, with a note."""
        from agency.agent.markdown import markdown

        return markdown(self)

    @classmethod
    def from_json(cls, text: str | bytes, output_type: Any = None) -> "ExecutionContext":
        """The context that `to_json` wrote; `output_type` makes its `final_result` an instance again.

        Raises `InvalidInput` whose `errors` name what does not fit.
        """
        from agency.agent.stored import Stored

        try:
            stored = Stored.model_validate_json(text)
            final = stored.final_result
            if output_type is not None and final is not None:
                final = TypeAdapter[Any](output_type).validate_python(final)
        except ValidationError as exc:
            raise InvalidInput(f"not a stored context: {exc.error_count()} faults", _faults(exc)) from exc
        return cls(stored.execution_id, stored.events, stored.current_step, stored.state, final)


def _has_text_keys(value: Any) -> bool:
    """Whether every key is text. Other keys would become text in JSON and be missed when it is read again."""
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return all(isinstance(key, str) and _has_text_keys(item) for key, item in pairs)
    if isinstance(value, list | tuple):
        return all(map(_has_text_keys, cast("list[Any]", value)))
    return True


def _faults(error: ValidationError) -> list[dict[str, str]]:
    return [
        {"path": ".".join(str(part) for part in fault["loc"]), "message": fault["msg"]}
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
    ]
