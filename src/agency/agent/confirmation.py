"""What a person says to a tool call that must be confirmed."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A decision on one pending call.

    On approval `arguments` replace the model's; on rejection `reason` goes to the model.
    """

    tool_call_id: str
    decision: Literal["approve", "reject"]
    arguments: dict[str, Any] | None = None
    reason: str = ""

    @property
    def approved(self) -> bool:
        return self.decision == "approve"
