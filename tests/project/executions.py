"""The definitions of the tests' project."""

from pydantic import BaseModel, Field

from agency.agent import LLMToolConfig
from agency.execution import (
    BaseAgenticExecutionDefinition,
    BaseExecutionValidator,
    Conversation,
    ExecutionFailureCode,
    ExecutionInputType,
    IsValidJsonValidator,
    StopExecutionTool,
    StopExecutionValidator,
    ToolScratchpad,
    ValidatorFailureResponse,
    ValidatorResponse,
    ValidatorSuccessResponse,
)
from tests.project.agents import Clerk


class Text(ExecutionInputType):
    text: str = Field(min_length=1)
    language: str = "en"


class WordCount(BaseModel):
    words: int


class CountFailureCode(ExecutionFailureCode):
    NOT_A_TEXT = "not_a_text"


class CountedWithTheTool(BaseExecutionValidator):
    """The answer must be what the tool has counted."""

    def validate(
        self, response: str, execution_input: ExecutionInputType | None, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        counted = tool_scratchpad.read("words")
        if counted is None or str(counted) in response:
            return ValidatorSuccessResponse()
        return ValidatorFailureResponse(f"The tool counted {counted} words; say that number.")


class CountWords(BaseAgenticExecutionDefinition):
    EXECUTION_KEY = "count-words"
    AGENT_KEY = "clerk"
    NAME = "Count words"
    DESCRIPTION = "Counts the words of a text."
    INPUT_TYPE = Text
    OUTPUT_TYPE = WordCount
    TOOLS = [*Clerk.TOOLS, LLMToolConfig(tool_class=StopExecutionTool)]
    VALIDATORS = [StopExecutionValidator, IsValidJsonValidator, CountedWithTheTool]
    FAILURE_CODES = CountFailureCode
    MAX_RETRIES = 2

    def execute(self, input_data: Text, conversation: Conversation) -> str:
        return conversation.ask(f'Count the words and answer {{"words": n}}:\n\n{input_data.text}')


class Summarise(BaseAgenticExecutionDefinition):
    """Two questions in one attempt, and any answer will do."""

    EXECUTION_KEY = "summarise"
    AGENT_KEY = "clerk"
    NAME = "Summarise"
    INPUT_TYPE = Text
    VALIDATORS = []

    def execute(self, input_data: Text, conversation: Conversation) -> str:
        conversation.ask(f"Read this:\n\n{input_data.text}")
        return conversation.ask("Now say it in a sentence.")


class ShelveBooks(BaseAgenticExecutionDefinition):
    """Takes no input."""

    EXECUTION_KEY = "shelve-books"
    AGENT_KEY = "librarian"
    NAME = "Shelve books"
    TOOLS = []

    def execute(self, input_data: ExecutionInputType, conversation: Conversation) -> str:
        return conversation.ask("Shelve the books.")
