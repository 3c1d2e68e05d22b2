"""The tool with which an agent gives up on purpose; `StopExecutionValidator` reads what it left."""

from pydantic import BaseModel, Field

from agency.agent.text import clean
from agency.agent.tool_classes import BaseTool
from agency.enums import Effect
from agency.execution.scratchpad import ToolScratchpad

STOP_REASON = "stop_execution"


class StopExecutionArguments(BaseModel):
    stop_reason: str = Field(description="Why the task cannot be done, in a sentence for a person.")


class StopExecutionTool(BaseTool):
    """Ends the model's turn and, with `StopExecutionValidator`, the execution."""

    NAME = "stop_execution"
    DESCRIPTION = (
        "Stop for good when the task cannot be done, for example because the input is not what it should be. "
        "Do not use it to finish a task that went well."
    )
    ARGS_SCHEMA = StopExecutionArguments
    RETURN_DIRECT = True
    EFFECT = Effect.READ

    def run(self, stop_reason: str, scratchpad: ToolScratchpad) -> str:
        scratchpad.record(STOP_REASON, stop_reason)
        return clean(f"Stopped: {stop_reason}" if stop_reason.strip() else "Stopped.")
