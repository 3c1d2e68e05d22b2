"""The JSON form of a context, for who reads one."""

from typing import Any, Literal

from pydantic import BaseModel

from agency.agent.events import Event


class Stored(BaseModel):
    """What `ExecutionContext.to_json` writes."""

    version: Literal[1]
    execution_id: str
    events: list[Event]
    current_step: int
    state: dict[str, Any]
    final_result: Any
