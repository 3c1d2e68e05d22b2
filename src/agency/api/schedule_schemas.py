"""The shapes of schedules and of their slots: what comes in, what goes out."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agency.api.mission_schemas import without_defaults
from agency.api.schemas import Incoming, only_storable
from agency.enums import CatchUp, Overlap, SlotOutcome
from agency.mission import schedules
from agency.mission.cron import LONGEST
from agency.models import Schedule, ScheduleSlot

Cron = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST, examples=["30 8 * * mon-fri"]),
    AfterValidator(only_storable),
]
TimeZone = Annotated[
    str,
    Field(min_length=1, max_length=100, examples=["Europe/Berlin"]),
    AfterValidator(only_storable),
]


class ScheduleOrder(Incoming):
    """When to dispatch the mission: five cron fields, as the clock of `time_zone` (an IANA name) shows them.

    `overlap` says what a slot does while an execution of the schedule still runs; `catch_up` what becomes of
    slots that passed while nothing ran.
    """

    cron: Cron
    time_zone: TimeZone = "UTC"
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.RUN_ONCE
    is_paused: Annotated[bool, Field(strict=True)] = False


_UNSET: Any = None


class ScheduleChange(Incoming):
    """Fields to change; what is left out stays."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=without_defaults)

    cron: Cron = _UNSET
    time_zone: TimeZone = _UNSET
    overlap: Overlap = _UNSET
    catch_up: CatchUp = _UNSET


class ScheduleOut(BaseModel):
    """A schedule. `next_slot_at` is its next dispatch, null while it is paused; `next_times` are the next
    five in UTC, of a paused one those that it would have.
    """

    id: UUID
    mission: UUID
    cron: str
    time_zone: str
    overlap: Overlap
    catch_up: CatchUp
    is_paused: bool
    next_slot_at: datetime | None
    next_times: list[datetime]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: Schedule) -> "ScheduleOut":
        named = set(cls.model_fields) - {"mission", "next_times"}
        return cls(
            **{name: getattr(row, name) for name in named},
            mission=row.mission_id,
            next_times=schedules.upcoming(row),
        )


class SlotOut(BaseModel):
    """What became of one slot: the `execution` that was dispatched, if it still is there."""

    slot_at: datetime
    outcome: SlotOutcome
    execution: UUID | None

    @classmethod
    def of(cls, row: ScheduleSlot) -> "SlotOut":
        return cls(slot_at=row.slot_at, outcome=SlotOutcome(row.outcome), execution=row.execution_id)
