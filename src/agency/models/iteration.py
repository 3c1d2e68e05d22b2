"""The ledger: one append-only row per committed iteration (for a definition: per attempt)."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agency.enums import Verdict
from agency.models.choices import one_of


class Iteration(models.Model):
    """The n-th pass of an execution, committed once.

    `started_at` is its first claim (of a later attempt, the end of the one before, which it follows at once).
    `feedback` is what the next attempt is told; `event_seq` is the execution's last event at the
    commit, so that a new claimer knows what belongs to the attempt it continues.
    """

    OWNER_PATH = "execution__owner"

    execution = models.ForeignKey("agency.Execution", on_delete=models.CASCADE, related_name="iterations")
    n = models.PositiveIntegerField()
    claim_id = models.UUIDField()
    fence = models.PositiveBigIntegerField()
    verdict = models.CharField(max_length=20)
    summary = models.TextField(blank=True, default="")
    feedback = models.TextField(null=True)
    failure_code = models.CharField(max_length=100, null=True)
    decision = models.JSONField(null=True)
    state = models.JSONField(default=dict)
    usage = models.JSONField(default=dict)
    event_seq = models.PositiveBigIntegerField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(db_default=Now())

    class Meta:
        app_label = "agency"
        ordering = ("execution", "n")
        constraints = (
            models.UniqueConstraint(fields=("execution", "n"), name="agency_iteration_once"),
            models.CheckConstraint(condition=Q(n__gte=1), name="agency_iteration_from_one"),
            one_of("verdict", Verdict, name="agency_iteration_verdict"),
        )

    def __str__(self) -> str:
        return f"{self.execution_id} #{self.n} {self.verdict}"
