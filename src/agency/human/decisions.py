"""What people decided, as the agent takes it: read by a run that goes on after an answer."""

from typing import Any

from agency.agent.confirmation import Confirmation
from agency.enums import HumanDecision, HumanRequestKind
from agency.human.requests import OPEN, items
from agency.models import HumanRequestItem

_CONFIRMING = [
    decision.value for decision in (HumanDecision.APPROVE, HumanDecision.REJECT, HumanDecision.ANSWER)
]


_OF_CALLS = [
    kind.value for kind in HumanRequestKind if kind not in {HumanRequestKind.INPUT, HumanRequestKind.BUDGET}
]


def decisions_for(execution_id: object, iteration: int) -> list[Confirmation]:
    """What people (or the expiry) decided on the calls of an iteration, as the agent takes it.

    Decisions of a request that is still open are not among them: a run goes on when all are there.
    """
    rows = (
        items()
        .filter(request__execution_id=execution_id, request__iteration=iteration, decision__in=_CONFIRMING)
        .filter(kind__in=_OF_CALLS)
    )
    decided = rows.exclude(request__status=OPEN).order_by("decided_at", "id")
    return [confirmation(row) for row in decided]


def confirmation(item: HumanRequestItem) -> Confirmation:
    decision: Any = item.decision
    return Confirmation(item.call_id, decision, item.effective, item.reason, item.answer)
