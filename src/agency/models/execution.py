"""The one table of durable runs. Its CHECK constraints say which combinations of columns are legal."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from agency.enums import TERMINAL_STATUSES, ExecutionStatus, LoopStatus
from agency.models.choices import one_of

_TERMINAL = sorted(status.value for status in TERMINAL_STATUSES)
_DUE = Q(next_run_at__isnull=False)
_CLAIMED = Q(claim_id__isnull=False)
_OPEN = Q(finished_at__isnull=True)
_IDLE = Q(next_run_at__isnull=True, claim_id__isnull=True)


class Execution(models.Model):
    """One durable run of a definition (`execution_key`) or a `mission` by a configured agent.

    A row that is not terminal is exactly one of: due (`next_run_at`), claimed (`claim_id`, `claim_owner`,
    `lease_until`), or waiting for a person (`interrupted`). `iteration` counts committed iterations
    (attempts), `fence` rises with every claim, `generation` with every extension out of a terminal state.
    `provider` is the one its model is of; with `owner` and `agent` it makes the lane. A claim under a
    concurrency limit holds a numbered seat of that limit, which a unique index gives to one claim at a
    time. `announce_at` is when the sweep tells listeners of the end if nobody has done so by then.
    `iteration_fence` is the claim that began the iteration that is open, NULL before it.
    `journal_version` is the newest form in which its journal was written.
    """

    OWNER_PATH = "owner"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    agent = models.ForeignKey("agency.ConfiguredAgent", on_delete=models.PROTECT, related_name="executions")
    thread = models.OneToOneField("agency.Thread", on_delete=models.PROTECT, related_name="execution")
    execution_key = models.SlugField(max_length=100, null=True)
    mission = models.ForeignKey(
        "agency.Mission", on_delete=models.PROTECT, null=True, related_name="executions"
    )
    provider = models.CharField(max_length=100, default="", db_default="")
    batch_id = models.UUIDField(null=True, db_index=True)

    status = models.CharField(max_length=20, default=ExecutionStatus.PENDING.value)
    loop_status = models.CharField(max_length=20, null=True)
    iteration = models.PositiveIntegerField(default=0)
    max_iterations = models.PositiveIntegerField(null=True)
    loop_decision = models.JSONField(null=True)
    generation = models.PositiveIntegerField(default=1)

    next_run_at = models.DateTimeField(null=True)
    fence = models.PositiveBigIntegerField(default=0)
    iteration_fence = models.PositiveBigIntegerField(null=True)
    claim_id = models.UUIDField(null=True)
    claim_owner = models.CharField(max_length=200, null=True)
    lease_until = models.DateTimeField(null=True)
    claim_count = models.PositiveIntegerField(default=0)
    owner_seat = models.PositiveIntegerField(null=True)
    agent_seat = models.PositiveIntegerField(null=True)
    provider_seat = models.PositiveIntegerField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    last_woken_at = models.DateTimeField(null=True)
    wake_tries = models.PositiveIntegerField(default=0)
    journal_version = models.PositiveSmallIntegerField(default=1, db_default=1)

    input = models.JSONField(default=dict)
    output = models.JSONField(null=True)
    result = models.JSONField(null=True)
    failure_code = models.CharField(max_length=100, null=True)
    failure_summary = models.TextField(null=True)
    config = models.JSONField(default=dict)
    config_hash = models.CharField(max_length=64, default="")
    metadata = models.JSONField(default=dict)
    usage = models.JSONField(default=dict)

    idempotency_key = models.CharField(max_length=200, null=True)
    idempotency_digest = models.CharField(max_length=64, null=True)

    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    announce_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "agency"
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=("next_run_at",), condition=_DUE, name="agency_execution_due"),
            models.Index(fields=("lease_until",), condition=_CLAIMED, name="agency_execution_claimed"),
            models.Index(fields=("owner", "-created_at", "-id"), name="agency_execution_list"),
            models.Index(
                fields=("announce_at",),
                condition=Q(announce_at__isnull=False),
                name="agency_execution_announce",
            ),
            models.Index(
                fields=("owner", "agent", "provider", "next_run_at"),
                condition=_DUE,
                name="agency_execution_lane",
            ),
            models.Index(
                fields=("mission",),
                condition=_OPEN & Q(mission__isnull=False),
                name="agency_execution_mission_open",
            ),
            # What the sweep closes: three rules, an index for each, so that no rule reads the table.
            models.Index(
                fields=("cancel_requested_at",),
                condition=_OPEN & Q(cancel_requested_at__isnull=False),
                name="agency_execution_cancel",
            ),
            models.Index(
                fields=("deadline_at",),
                condition=_OPEN & Q(deadline_at__isnull=False),
                name="agency_execution_deadline",
            ),
            models.Index(
                fields=("claim_count",),
                condition=_OPEN,
                name="agency_execution_losses",
            ),
        )
        constraints = (
            one_of("status", ExecutionStatus, name="agency_execution_status"),
            one_of("loop_status", LoopStatus, name="agency_execution_loop_status", nullable=True),
            models.CheckConstraint(
                condition=(Q(execution_key__isnull=False, mission__isnull=True) & ~Q(execution_key=""))
                | Q(execution_key__isnull=True, mission__isnull=False),
                name="agency_execution_has_order",
            ),
            models.CheckConstraint(
                condition=Q(execution_key__isnull=True)
                | Q(loop_status__isnull=True, max_iterations__isnull=True),
                name="agency_execution_definition_no_loop",
            ),
            models.CheckConstraint(
                condition=(
                    Q(status=ExecutionStatus.PENDING.value, next_run_at__isnull=False, claim_id__isnull=True)
                    | Q(
                        status=ExecutionStatus.IN_PROGRESS.value,
                        next_run_at__isnull=False,
                        claim_id__isnull=True,
                    )
                    | Q(
                        status=ExecutionStatus.IN_PROGRESS.value,
                        next_run_at__isnull=True,
                        claim_id__isnull=False,
                    )
                    | (Q(status=ExecutionStatus.INTERRUPTED.value) & _IDLE)
                    | (Q(status__in=_TERMINAL) & _IDLE)
                ),
                name="agency_execution_one_situation",
            ),
            models.CheckConstraint(
                condition=(
                    Q(claim_id__isnull=True, claim_owner__isnull=True, lease_until__isnull=True)
                    | Q(claim_id__isnull=False, claim_owner__isnull=False, lease_until__isnull=False)
                ),
                name="agency_execution_claim_whole",
            ),
            models.CheckConstraint(
                condition=(
                    Q(status__in=_TERMINAL, finished_at__isnull=False)
                    | (~Q(status__in=_TERMINAL) & Q(finished_at__isnull=True))
                ),
                name="agency_execution_finished_at",
            ),
            models.CheckConstraint(
                condition=(
                    Q(status=ExecutionStatus.FAILED.value, failure_code__isnull=False)
                    | (~Q(status=ExecutionStatus.FAILED.value) & Q(failure_code__isnull=True))
                ),
                name="agency_execution_failure_code",
            ),
            models.CheckConstraint(
                condition=Q(status=ExecutionStatus.CANCELLED.value, cancel_requested_at__isnull=False)
                | ~Q(status=ExecutionStatus.CANCELLED.value),
                name="agency_execution_cancel_asked",
            ),
            models.CheckConstraint(
                condition=(
                    Q(loop_status__isnull=True)
                    | Q(
                        loop_status=LoopStatus.RUNNING.value,
                        status__in=sorted(
                            (
                                ExecutionStatus.PENDING.value,
                                ExecutionStatus.IN_PROGRESS.value,
                                ExecutionStatus.INTERRUPTED.value,
                            )
                        ),
                    )
                    | Q(
                        loop_status=LoopStatus.WAITING.value,
                        status=ExecutionStatus.IN_PROGRESS.value,
                        next_run_at__isnull=False,
                    )
                    | Q(loop_status=LoopStatus.BLOCKED.value, status=ExecutionStatus.INTERRUPTED.value)
                    | Q(loop_status=LoopStatus.COMPLETED.value, status=ExecutionStatus.FINISHED.value)
                    | (
                        Q(loop_status=LoopStatus.FAILED.value, status=ExecutionStatus.FAILED.value)
                        & ~Q(failure_code="limit_reached")
                    )
                    | Q(loop_status=LoopStatus.CANCELLED.value, status=ExecutionStatus.CANCELLED.value)
                    | Q(
                        loop_status=LoopStatus.LIMIT_REACHED.value,
                        status=ExecutionStatus.FAILED.value,
                        failure_code="limit_reached",
                    )
                ),
                name="agency_execution_loop_agrees",
            ),
            models.CheckConstraint(
                condition=Q(max_iterations__isnull=True) | Q(iteration__lte=F("max_iterations")),
                name="agency_execution_iteration_limit",
            ),
            models.CheckConstraint(
                condition=(
                    Q(idempotency_key__isnull=True, idempotency_digest__isnull=True)
                    | Q(idempotency_key__isnull=False, idempotency_digest__isnull=False)
                ),
                name="agency_execution_idempotency_whole",
            ),
            models.UniqueConstraint(
                fields=("owner", "idempotency_key"),
                condition=Q(idempotency_key__isnull=False),
                name="agency_execution_idempotency_once",
            ),
            *(
                models.UniqueConstraint(
                    fields=(whose, f"{whose}_seat"),
                    condition=_CLAIMED & Q(**{f"{whose}_seat__isnull": False}),
                    name=f"agency_execution_{whose}_seat_once",
                )
                for whose in ("owner", "agent", "provider")
            ),
        )

    def __str__(self) -> str:
        return f"{self.execution_key or 'mission'} {self.id} ({self.status})"

    @property
    def is_terminal(self) -> bool:
        return self.status in _TERMINAL

    @property
    def event_seq(self) -> int:
        """The number of the newest event, 0 if there is none: by a look at the log.

        A row that was read `with_event_seq` knows the one of that moment.
        """
        if (known := self.__dict__.get("newest_seq")) is not None:
            return known
        return self.events.aggregate(newest=models.Max("seq"))["newest"] or 0
