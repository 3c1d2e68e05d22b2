"""Definitions, validators and conversations that the tests of this folder share."""

from typing import Any, ClassVar

from agency.agent.agent import Agent
from agency.agent.testing import ScriptedLlm
from agency.execution import (
    BaseAgenticExecutionDefinition,
    BaseExecutionValidator,
    Conversation,
    ExecutionInputType,
    StopExecutionTool,
    ToolScratchpad,
    ValidatorFailureResponse,
    ValidatorResponse,
    ValidatorSuccessResponse,
)
from agency.execution.conversation import ClosedAttempt


class Topic(ExecutionInputType):
    topic: str = "rain"


class Report(BaseAgenticExecutionDefinition):
    EXECUTION_KEY = "report"
    AGENT_KEY = "clerk"
    NAME = "Report"
    INPUT_TYPE = Topic

    def execute(self, input_data: Topic, conversation: Conversation) -> str:
        return conversation.ask(f"Report on {input_data.topic}")


class Ledger:
    """Keeps the closed attempts in memory."""

    def __init__(self) -> None:
        self.closed: list[ClosedAttempt] = []

    def close_attempt(self, closed: ClosedAttempt) -> None:
        self.closed.append(closed)


class Verdicts(BaseExecutionValidator):
    """Answers what the class's script says, one per validation."""

    script: ClassVar[list[Any]] = []

    def validate(
        self, response: str, execution_input: ExecutionInputType | None, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        verdict = self.script.pop(0) if self.script else ValidatorSuccessResponse()
        if isinstance(verdict, Exception):
            raise verdict
        return verdict


def verdicts(*script: Any) -> type[Verdicts]:
    return type("ScriptedValidator", (Verdicts,), {"script": list(script)})


def rejects(feedback: str | None, **options: Any) -> ValidatorFailureResponse:
    return ValidatorFailureResponse(feedback, **options)


def define(**attributes: Any) -> Report:
    """An instance of `Report` with some class variables replaced."""
    return type("Made", (Report,), attributes)()


def conversation(*answers: Any, tools: Any = (StopExecutionTool,), **options: Any) -> Conversation:
    agent_options = {
        key: options.pop(key) for key in ("max_steps", "limits", "output_type") if key in options
    }
    agent = Agent("clerk", ScriptedLlm(*answers), "Be brief.", tools, model_retries=0, **agent_options)
    return Conversation(agent, **options)


def llm(talk: Conversation) -> ScriptedLlm:
    assert isinstance(talk.agent.llm, ScriptedLlm)
    return talk.agent.llm


def sent(talk: Conversation) -> list[str]:
    """The user messages that the conversation holds, in order."""
    return [event.text for event in talk.context.events if event.author == "user"]
