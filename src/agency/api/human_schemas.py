"""The shapes of human requests: how they go out, and how answers come in."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from agency.enums import (
    ALLOWED_DECISIONS,
    AlwaysFor,
    HumanDecision,
    HumanRequestKind,
    HumanRequestStatus,
)
from agency.human.answers import LONGEST_REASON, MOST_GRANTED, ItemAnswer
from agency.models import HumanRequest, HumanRequestItem

MOST_ITEMS = 200


class ItemDecision(BaseModel):
    """A decision on one call. `digest` is that of the item as it was read.

    `arguments` (with `approve`) replace the proposed ones; `answer` goes with `answer`, `result` with
    `happened`; `reason` is for the model. `always` (with `approve`): later calls of this tool ask nobody, in
    this execution or (`always_for`) in every one of its mission. `grant` (with `answer`): how many more
    iterations a mission gets whose iterations are used up, which `proposed.needs_grant` says.
    """

    model_config = ConfigDict(extra="forbid")

    call_id: Annotated[str, Field(min_length=1, max_length=2_000)]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    decision: HumanDecision
    arguments: dict[str, Any] | None = None
    answer: Any = None
    result: Any = None
    reason: Annotated[str, Field(max_length=LONGEST_REASON)] = ""
    always: bool = False
    always_for: AlwaysFor = AlwaysFor.EXECUTION
    grant: Annotated[int, Field(strict=True, ge=1, le=MOST_GRANTED)] | None = None

    def given(self) -> ItemAnswer:
        return ItemAnswer(**{name: getattr(self, name) for name in ItemDecision.model_fields})


class Answers(BaseModel):
    """Decisions on some or all calls of a request; all count, or none."""

    model_config = ConfigDict(extra="forbid")

    items: list[ItemDecision] = Field(min_length=1, max_length=MOST_ITEMS)


class HumanItemOut(BaseModel):
    """One call. `decisions` are those that fit; `answer_schema` is the JSON Schema of `arguments` that may
    be edited, of an `answer` or of a `result`. `decision` is null until somebody has decided.
    """

    call_id: str
    kind: HumanRequestKind
    tool: str
    digest: str
    proposed: dict[str, Any]
    answer_schema: dict[str, Any]
    decisions: list[HumanDecision]
    decision: HumanDecision | None
    effective: dict[str, Any] | None
    answer: Any
    reason: str
    decided_by: str | None
    decided_at: datetime | None

    @classmethod
    def of(cls, row: HumanRequestItem) -> "HumanItemOut":
        stored = {
            name: getattr(row, name) for name in cls.model_fields if name not in {"decisions", "decided_by"}
        }
        by = None if row.decided_by is None else row.decided_by.get_username()
        return cls(**stored, decisions=list(ALLOWED_DECISIONS[HumanRequestKind(row.kind)]), decided_by=by)


class HumanRequestOut(BaseModel):
    """What an execution wants of a person; `message` says it in one sentence."""

    id: UUID
    execution: UUID
    execution_key: str | None
    mission: UUID | None
    mission_name: str | None
    agent_name: str
    iteration: int
    kind: HumanRequestKind
    status: HumanRequestStatus
    message: str
    created_at: datetime
    expires_at: datetime
    warned_at: datetime | None
    closed_at: datetime | None
    items: list[HumanItemOut]

    @classmethod
    def of(cls, row: HumanRequest) -> "HumanRequestOut":
        named = ("id", "iteration", "kind", "status", "message", "created_at", "expires_at", "warned_at")
        items = sorted(row.items.all(), key=lambda item: item.position)
        return cls(
            **{name: getattr(row, name) for name in named},
            closed_at=row.closed_at,
            execution=row.execution_id,
            execution_key=row.execution.execution_key,
            mission=row.execution.mission_id,
            mission_name=(row.execution.config.get("mission") or {}).get("name"),
            agent_name=row.execution.agent.name,
            items=[HumanItemOut.of(item) for item in items],
        )

    @classmethod
    def open_of(cls, execution: Any) -> "HumanRequestOut | None":
        """The one that the execution waits for, if it waits."""
        row = execution.human_requests.filter(status=HumanRequestStatus.OPEN.value).first()
        return None if row is None else cls.of(row)


class HumanRequestPage(BaseModel):
    items: list[HumanRequestOut]
    next: str | None


class AskAgain(BaseModel):
    """The tool whose calls are to ask again."""

    model_config = ConfigDict(extra="forbid")

    tool: Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")]


class AskAgainOut(BaseModel):
    tool: str
    revoked: bool
