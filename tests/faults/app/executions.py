"""A definition whose attempts need a tool and a word that only the feedback tells."""

from agency.execution import (
    BaseAgenticExecutionDefinition,
    BaseExecutionValidator,
    Conversation,
    ExecutionInputType,
    IsValidJsonValidator,
    ToolScratchpad,
    ValidatorFailureResponse,
    ValidatorResponse,
    ValidatorSuccessResponse,
)


class Task(ExecutionInputType):
    """`word` is what the answer must hold and the scratchpad of its attempt too."""

    task: str
    word: str = "done"


class SaysTheWord(BaseExecutionValidator):
    def validate(
        self, response: str, execution_input: Task, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        if execution_input.word in response:
            return ValidatorSuccessResponse()
        jotted = ", ".join(tool_scratchpad.entries("jotted"))
        return ValidatorFailureResponse(f"Say {execution_input.word!r}. You jotted: {jotted or 'nothing'}.")


class Errand(BaseAgenticExecutionDefinition):
    EXECUTION_KEY = "fault-errand"
    AGENT_KEY = "fault-clerk"
    NAME = "Errand"
    INPUT_TYPE = Task
    VALIDATORS = [IsValidJsonValidator, SaysTheWord]
    MAX_RETRIES = 2

    def execute(self, input_data: Task, conversation: Conversation) -> str:
        return conversation.ask(input_data.task)
