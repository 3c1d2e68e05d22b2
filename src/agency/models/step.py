"""The step journal: announced and recorded model and tool calls, so that nothing is paid for twice."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agency.enums import Effect, StepStatus
from agency.models.choices import one_of


class Step(models.Model):
    """One journal entry of an execution.

    `key` is `iteration:turn:step:...`. An entry that is nothing but its events has no step: they carry its
    key. `event_seq` is the event that holds the content, or the newest that there was when the step was
    done; `result` holds a tool's result; `scratch` and `state` are what the call left in the scratchpad
    (list of [key, value]) and the context's state (NULL: unchanged).
    """

    OWNER_PATH = "execution__owner"

    execution = models.ForeignKey(
        "agency.Execution",
        on_delete=models.CASCADE,
        related_name="steps",
        db_index=False,
        db_constraint=False,
    )
    key = models.CharField(max_length=500)
    status = models.CharField(max_length=10)
    effect = models.CharField(max_length=12, null=True)
    idempotency_key = models.CharField(max_length=600, null=True)
    claim_id = models.UUIDField()
    event_seq = models.BigIntegerField(null=True)
    result = models.JSONField(null=True)
    scratch = models.JSONField(default=list)
    state = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    done_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "agency"
        constraints = (
            models.UniqueConstraint(fields=("execution", "key"), name="agency_step_once"),
            one_of("status", StepStatus, name="agency_step_status"),
            one_of("effect", Effect, name="agency_step_effect", nullable=True),
            models.CheckConstraint(
                condition=Q(status=StepStatus.DONE.value, done_at__isnull=False)
                | Q(status=StepStatus.INTENT.value, done_at__isnull=True),
                name="agency_step_done_at",
            ),
        )

    def __str__(self) -> str:
        return f"{self.execution_id} {self.key} {self.status}"
