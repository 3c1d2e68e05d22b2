"""Autonomous jobs judged by validators: everything a project needs to declare one. Imports no Django."""

from agency.enums import ExecutionStatus
from agency.execution.conversation import Conversation, TurnFailed
from agency.execution.definition import BaseAgenticExecutionDefinition
from agency.execution.failure import ExecutionFailureCode, ExecutionResult
from agency.execution.inputs import ExecutionInputType
from agency.execution.judge import JudgeValidator
from agency.execution.schema_validator import MatchesSchemaValidator
from agency.execution.scratchpad import ToolScratchpad
from agency.execution.stop import StopExecutionTool
from agency.execution.validators import (
    BaseExecutionValidator,
    IsValidJsonValidator,
    StopExecutionValidator,
    ValidatorFailureResponse,
    ValidatorResponse,
    ValidatorSuccessResponse,
)

__all__ = [
    "BaseAgenticExecutionDefinition",
    "BaseExecutionValidator",
    "Conversation",
    "ExecutionFailureCode",
    "ExecutionInputType",
    "ExecutionResult",
    "ExecutionStatus",
    "IsValidJsonValidator",
    "JudgeValidator",
    "MatchesSchemaValidator",
    "StopExecutionTool",
    "StopExecutionValidator",
    "ToolScratchpad",
    "TurnFailed",
    "ValidatorFailureResponse",
    "ValidatorResponse",
    "ValidatorSuccessResponse",
]
