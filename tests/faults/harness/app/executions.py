"""The harness's job: an attempt is good only when it is the last one that was ordered."""

import json

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


class Order(ExecutionInputType):
    """`number` names the order in every log; `mood` tells the provider how to answer it."""

    number: int
    attempts: int
    mood: str = "well"


class RefusesUntilTheLast(BaseExecutionValidator):
    """Also holds the scratchpad to account: exactly this attempt's note, whatever died in between."""

    def validate(
        self, response: str, execution_input: Order, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        attempt = json.loads(response)["attempt"]
        noted = tool_scratchpad.entries("applied")
        if noted != [attempt]:
            return ValidatorFailureResponse(
                f"attempt {attempt} noted {noted}", retry_needed=False, failure_code="scratchpad"
            )
        if attempt < execution_input.attempts:
            return ValidatorFailureResponse(f"Attempt {attempt} is not enough.")
        return ValidatorSuccessResponse()


class Rounds(BaseAgenticExecutionDefinition):
    EXECUTION_KEY = "harness-rounds"
    AGENT_KEY = "harness-applier"
    NAME = "Rounds"
    INPUT_TYPE = Order
    VALIDATORS = [IsValidJsonValidator, RefusesUntilTheLast]
    MAX_RETRIES = 99

    def execute(self, input_data: Order, conversation: Conversation) -> str:
        return conversation.ask(f"Order {input_data.number}, {input_data.mood}.")
