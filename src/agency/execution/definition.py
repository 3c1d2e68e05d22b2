"""A standing order in code: what a project subclasses to declare a kind of execution."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from agency.agent.limits import Limits
from agency.execution.attempts import Attempts
from agency.execution.conversation import Conversation
from agency.execution.failure import ExecutionFailureCode, ExecutionResult
from agency.execution.inputs import ExecutionInputType
from agency.execution.validators import IsValidJsonValidator, ValidatorEntry

if TYPE_CHECKING:
    from agency.models import ConfiguredAgent, Execution


class BaseAgenticExecutionDefinition(ABC):
    """An autonomous job: typed input, an agent, validators that judge each attempt, retries with feedback.

    Put subclasses into the `executions.py` of an installed app. `EXECUTION_KEY` is a unique slug of at most
    100 characters, `AGENT_KEY` that of a registered agent class. `SYSTEM_PROMPT` and `TOOLS` replace the
    agent's where they are not `None` (`[]` means no tools). A run makes at most 1 + `MAX_RETRIES` attempts.
    `OUTPUT_TYPE`, a Pydantic model, is an implicit last validator and shapes the stored output.
    `VALIDATORS` holds classes, zero-argument factories or configured instances; each validation gets a
    fresh one. A class that is only a base for others stays abstract or starts with an underscore.
    """

    EXECUTION_KEY: ClassVar[str]
    AGENT_KEY: ClassVar[str]
    NAME: ClassVar[str]
    DESCRIPTION: ClassVar[str | None] = None
    INPUT_TYPE: ClassVar[type[ExecutionInputType]] = ExecutionInputType
    VALIDATORS: ClassVar[Sequence[ValidatorEntry]] = [IsValidJsonValidator]
    SYSTEM_PROMPT: ClassVar[str | None] = None
    TOOLS: ClassVar[Sequence[Any] | None] = None
    MAX_RETRIES: ClassVar[int] = 3
    FAILURE_CODES: ClassVar[type[ExecutionFailureCode]] = ExecutionFailureCode
    OUTPUT_TYPE: ClassVar[Any] = None
    FAILURE_SUMMARY_PROMPT: ClassVar[str] = (
        "No further attempt will be made. In two or three plain sentences for the person who gave the task: "
        "what was tried, and why did it fail? Answer with text only."
    )
    LIMITS: ClassVar[Limits | None] = None

    @abstractmethod
    def execute(self, input_data: Any, conversation: Conversation) -> str:
        """One attempt: talk to the agent through `conversation.ask()` and return its answer.

        Called again for each retry; `conversation.attempt` and `conversation.feedback` say where it stands.
        After a crash it is called again for the attempt that was cut, and answers that were recorded are
        given again without asking the model: keep other effects out of it, or repeatable.
        """

    def run(self, input_data: Any, conversation: Conversation) -> ExecutionResult:
        """All attempts, from `conversation.attempt` on; the outcome is a value, whatever goes wrong."""
        return Attempts(self, input_data, conversation).run()

    @classmethod
    def submit(
        cls,
        agent: "ConfiguredAgent",
        input: dict[str, Any] | ExecutionInputType,
        *,
        idempotency_key: str | None = None,
    ) -> "Execution":
        """Create an execution of this definition in the caller's transaction; it runs after the commit.

        The same `idempotency_key` and input give the same execution again; another input raises
        `IdempotencyConflict`. Input that does not fit raises `InvalidInput` with the path of each field.
        """
        service = importlib.import_module("agency.execution.service")
        return service.submit(cls, agent, input, idempotency_key=idempotency_key).execution
