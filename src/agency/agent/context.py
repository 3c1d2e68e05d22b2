"""The working memory of a run: its whole event history, steps, state and final result.

It is not the request (a builder selects what the model sees) and never grows service handles.
"""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from agency.agent.events import Event
from agency.errors import InvalidInput


@dataclass
class ExecutionContext:
    """Everything that happened in an execution, in order.

    `state` is a scratch dictionary for tools and must stay JSON; `final_result` is `None` until
    the turn is done.
    """

    execution_id: str = field(default_factory=lambda: str(uuid.uuid4()))
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
