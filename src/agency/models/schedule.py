"""When a mission is dispatched by itself: a cron expression in a time zone, and one row for each slot."""

import uuid

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agency.enums import CatchUp, Overlap, SlotOutcome
from agency.models.choices import one_of


class Schedule(models.Model):
    """A mission's cron. `next_slot_at` is the next time it is to run, NULL while paused or without any.

    `overlap` says what happens while an execution of the schedule still runs, `catch_up` what happens to
    slots that nobody was there for.
    """

    OWNER_PATH = "mission__owner"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    mission = models.ForeignKey("agency.Mission", on_delete=models.CASCADE, related_name="schedules")
    cron = models.CharField(max_length=200)
    time_zone = models.CharField(max_length=100, default="UTC")
    overlap = models.CharField(max_length=20, default=Overlap.SKIP.value)
    catch_up = models.CharField(max_length=20, default=CatchUp.RUN_ONCE.value)
    is_paused = models.BooleanField(default=False)
    next_slot_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        app_label = "agency"
        ordering = ("created_at", "id")
        indexes = (
            models.Index(
                fields=("next_slot_at",),
                condition=Q(next_slot_at__isnull=False),
                name="agency_schedule_next",
            ),
        )
        constraints = (
            one_of("overlap", Overlap, name="agency_schedule_overlap"),
            one_of("catch_up", CatchUp, name="agency_schedule_catch_up"),
            models.CheckConstraint(
                condition=Q(is_paused=False) | Q(next_slot_at__isnull=True), name="agency_schedule_paused"
            ),
        )

    def __str__(self) -> str:
        return f"{self.cron} ({self.time_zone})"


class ScheduleSlot(models.Model):
    """What became of one slot; unique, so that any number of dispatchers dispatch it once.

    At most one of a schedule is queued.
    """

    OWNER_PATH = "schedule__mission__owner"

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="slots")
    slot_at = models.DateTimeField()
    outcome = models.CharField(max_length=20)
    execution = models.OneToOneField(
        "agency.Execution", on_delete=models.SET_NULL, null=True, related_name="schedule_slot"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        app_label = "agency"
        ordering = ("schedule", "slot_at")
        constraints = (
            models.UniqueConstraint(fields=("schedule", "slot_at"), name="agency_schedule_slot_once"),
            models.UniqueConstraint(
                fields=("schedule",),
                condition=Q(outcome=SlotOutcome.QUEUED.value),
                name="agency_schedule_slot_queued_once",
            ),
            one_of("outcome", SlotOutcome, name="agency_schedule_slot_outcome"),
        )

    def __str__(self) -> str:
        return f"{self.slot_at} {self.outcome}"
