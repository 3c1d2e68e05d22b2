"""What judges an attempt: the shape of a validator's answer, and the two that nearly every definition uses.

A definition lists validators as classes, as zero-argument factories, or as configured instances; either
way each validation gets a fresh one.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from agency.agent.beside import present
from agency.agent.events import Usage
from agency.agent.llm import LlmClient
from agency.agent.named import as_client
from agency.execution.inputs import ExecutionInputType
from agency.execution.output import NotJson, is_fenced, parse_json
from agency.execution.scratchpad import ToolScratchpad
from agency.execution.stop import STOP_REASON


@dataclass
class ValidatorResponse:
    """What a validator says of a response.

    With `retry_needed=False` the execution ends at once as failed: `failure_code` (default
    `validation_failed`) and `feedback` become its code and summary. Else `feedback` goes to the model.
    `usage` is what the validation itself has cost, beside what it asked by `BaseExecutionValidator.llm`.
    """

    validation_successful: bool
    retry_needed: bool = True
    feedback: str | None = None
    failure_code: str | None = None
    usage: Usage | None = None


class ValidatorSuccessResponse(ValidatorResponse):
    """The response is fine."""

    def __init__(self, *, usage: Usage | None = None) -> None:
        super().__init__(validation_successful=True, retry_needed=False, usage=usage)


class ValidatorFailureResponse(ValidatorResponse):
    """The response is not fine; `feedback` says to the model what to change."""

    def __init__(
        self,
        feedback: str | None,
        retry_needed: bool = True,
        failure_code: str | None = None,
        *,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(False, retry_needed, feedback, failure_code, usage)


class BaseExecutionValidator(ABC):
    """Subclass it and write `validate`."""

    @abstractmethod
    def validate(
        self, response: str, execution_input: ExecutionInputType | None, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        """Judge the text of one attempt, given the execution's input and what its tools recorded."""

    def llm(self, model: LlmClient | str) -> LlmClient:
        """A client to judge with, on `model`: a client or a `"provider:model"`.

        Within an execution its calls are part of the run: they are recorded, paid for once, counted and
        stopped with it. Where the model is not available, the run is tried again later.
        """
        beside = present.get()
        return as_client(model) if beside is None else beside.client(model, type(self).__name__)

    def fresh(self) -> Self:
        """A copy that shares nothing with this one: what an instance in `VALIDATORS` is used for."""
        return copy.deepcopy(self)


ValidatorEntry = type[BaseExecutionValidator] | BaseExecutionValidator | Callable[[], BaseExecutionValidator]
Validators = Sequence[ValidatorEntry]


def make_validator(entry: ValidatorEntry) -> BaseExecutionValidator:
    """A fresh validator from an entry of `VALIDATORS`."""
    return entry.fresh() if isinstance(entry, BaseExecutionValidator) else entry()


def validator_name(entry: Any) -> str:
    """How messages call an entry of `VALIDATORS`."""
    if isinstance(entry, BaseExecutionValidator):
        return type(entry).__name__
    return getattr(getattr(entry, "func", entry), "__name__", None) or repr(entry)


def json_fault(response: str) -> str | None:
    """Feedback for a response that is no strict JSON; `None` if it is."""
    if not response.strip():
        return "Your answer was empty. Answer with JSON and nothing else."
    try:
        parse_json(response)
    except NotJson as exc:
        if is_fenced(response):
            return "Your answer is in a Markdown code fence (```). Send the bare JSON, without the fence."
        return f"Your answer is not valid JSON: {exc}. Answer with JSON and nothing else."
    return None


class IsValidJsonValidator(BaseExecutionValidator):
    """The response must be strict JSON: no `NaN`, no code fence, no text around it."""

    def validate(
        self, response: str, execution_input: ExecutionInputType | None, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        fault = json_fault(response)
        return ValidatorFailureResponse(fault) if fault else ValidatorSuccessResponse()


class StopExecutionValidator(BaseExecutionValidator):
    """Ends the execution where the agent called the stop tool; its reason becomes the failure summary.

    Place it first: what the agent says beside a stop is not to be judged.
    """

    def validate(
        self, response: str, execution_input: ExecutionInputType | None, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        reasons = tool_scratchpad.entries(STOP_REASON)
        if not reasons:
            return ValidatorSuccessResponse()
        return ValidatorFailureResponse(str(reasons[-1]), retry_needed=False)
