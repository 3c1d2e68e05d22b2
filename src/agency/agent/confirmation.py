"""What a person says to a tool call that waits for one."""

from dataclasses import dataclass
from typing import Any, Literal


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

    @property
    def approved(self) -> bool:
        return self.decision != "reject"
