"""What a person says to a tool call that waits for one."""

from dataclasses import dataclass
from typing import Any, Literal

from agency.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A decision on one pending call.

    On approval `arguments` replace the model's; on rejection `reason` goes to the model. A question
    (`ask_human`) takes the decision `answer`, with any JSON value as the `answer`. The id of a call that is
    pending in a run inside another call is `outer/inner`, as `AgentResult.pending` gives it.
    """

    tool_call_id: str
    decision: Literal["approve", "reject", "answer"]
    arguments: dict[str, Any] | None = None
    reason: str = ""
    answer: Any = None

    def __post_init__(self) -> None:
        if self.decision not in ("approve", "reject", "answer"):
            raise InvalidInput(
                f"confirmation for {self.tool_call_id!r}: the decision is {self.decision!r}; "
                "decide 'approve', 'reject' or 'answer'"
            )
        if self.arguments is not None and self.decision != "approve":
            raise InvalidInput(
                f"confirmation for {self.tool_call_id!r}: arguments are for 'approve', not {self.decision!r}"
            )

    @property
    def approved(self) -> bool:
        return self.decision in ("approve", "answer")
