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
class AgentResult:
    """What `Agent.run` returns.

    `output`: the final answer (text, or an instance of `output_type`; falsy values are answers).
    `stop_reason`: a short word (`final_answer`, `return_direct`, `max_steps`, `model_unavailable`,
    `model_refused`, `model_output_invalid`, `context_overflow`, ...). `error`: set when `failed`.
    `retry_after`: seconds, with `model_unavailable`. `pending`: calls that wait for a person, with the
    `stop_reason` `question` if they are questions only, else `confirmation`; one in the run of another
    agent has the id `outer/inner`.
    """

    output: Any
    context: ExecutionContext
    status: RunStatus
    stop_reason: str
    usage: Usage = field(default_factory=Usage)
    pending: list[ToolCall] = field(default_factory=list[ToolCall])
    error: EventError | None = None
    retry_after: float | None = None
