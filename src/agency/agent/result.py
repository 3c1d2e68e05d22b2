"""How a run ended. A run that ran out of steps or failed is never `completed`."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agency.agent.context import ExecutionContext
from agency.agent.events import EventError, ToolCall, Usage


class RunStatus(StrEnum):
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    MAX_STEPS = "max_steps"
    LIMIT = "limit"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class Asked:
    """A pending call and what a person may say to it.

    `schema` is the JSON Schema of the arguments, which the person may edit, or of the answer to a question.
    """

    call: ToolCall
    schema: dict[str, Any]
    is_question: bool = False


@dataclass(slots=True)
class AgentResult:
    """What `Agent.run` returns.

    `output`: the final answer (text, or an instance of `output_type`; falsy values are answers).
    `stop_reason`: a short word (`final_answer`, `return_direct`, `max_steps`, `model_unavailable`,
    `model_refused`, `model_output_invalid`, `context_overflow`, ...). `error`: set when `failed`.
    `retry_after`: seconds, with `model_unavailable`. `pending`: calls that wait for a person, with the
    `stop_reason` `question` if they are questions only, else `confirmation`; one in the run of another
    agent has the id `outer/inner`. `asked`: the same calls with what may be answered.
    """

    output: Any
    context: ExecutionContext
    status: RunStatus
    stop_reason: str
    usage: Usage = field(default_factory=Usage)
    pending: list[ToolCall] = field(default_factory=list[ToolCall])
    asked: list[Asked] = field(default_factory=list[Asked])
    error: EventError | None = None
    retry_after: float | None = None
