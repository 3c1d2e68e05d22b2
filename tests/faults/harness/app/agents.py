"""The agent of the harness: its tool changes the world outside, under the call's idempotency key."""

import os

from agency.agent import BaseAgent, Effect, tool
from agency.agent.injection import ToolCallInfo
from agency.execution import ToolScratchpad
from tests.faults.harness.app.wire import post

EFFECTS = "AGENCY_HARNESS_EFFECTS"


@tool(effect=Effect.IDEMPOTENT)
def apply(attempt: int, scratchpad: ToolScratchpad, info: ToolCallInfo) -> str:
    """Change the world once.

    Args:
        attempt: the attempt that asks for it
    """
    scratchpad.record("applied", attempt)
    post(os.environ[EFFECTS], "/apply", b"", {"Idempotency-Key": info.idempotency_key})
    return "applied"


@tool(effect=Effect.IDEMPOTENT, requires_confirmation=True)
def apply_if_allowed(attempt: int, scratchpad: ToolScratchpad, info: ToolCallInfo) -> str:
    """Change the world once, if a person agrees.

    Args:
        attempt: the attempt that asks for it
    """
    return apply.function(attempt, scratchpad, info)


class Applier(BaseAgent):
    AGENT_KEY = "harness-applier"
    NAME = "Applier"
    SYSTEM_PROMPT = "Apply, then answer."
    TOOLS = [apply, apply_if_allowed]
    DEFAULT_MODEL = "harness:model"
