"""The log: append-only facts, gapless per execution. The event row holds the content, others refer to it."""

import uuid
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from agency.enums import TERMINAL_EVENTS, EventKind
from agency.models.choices import one_of

if TYPE_CHECKING:
    from agency.models.execution import Execution


class Event(models.Model):
    """One recorded fact. `kind` is `content` for an agent's events, else a lifecycle word with `data`.

    `seq` is the one after the newest, found under the execution's row lock, so that it has no gaps. Each
    constraint is paid for at each commit of a journal, so there are few: `doctor --invariants` has the rest.
    """

    OWNER_PATH = "execution__owner"

    execution = models.ForeignKey(
        "agency.Execution",
        on_delete=models.CASCADE,
        related_name="events",
        db_index=False,
        db_constraint=False,
    )
    seq = models.BigIntegerField()
    event_id = models.UUIDField(default=uuid.uuid4)
    kind = models.CharField(max_length=40, default=EventKind.CONTENT.value)
    generation = models.IntegerField(default=1)
    iteration = models.IntegerField(default=0)
    step = models.IntegerField(default=0)
    author = models.CharField(max_length=200, default="")
    content = models.JSONField(default=list)
    data = models.JSONField(default=dict)
    usage = models.JSONField(null=True)
    error = models.JSONField(null=True)
    call = models.JSONField(null=True)
    timestamp = models.DateTimeField(db_default=Now())

    class Meta:
        app_label = "agency"
        ordering = ("execution", "seq")
        constraints = (
            models.UniqueConstraint(fields=("execution", "seq"), name="agency_event_seq_once"),
            models.CheckConstraint(condition=Q(seq__gte=1), name="agency_event_from_one"),
            one_of("kind", EventKind, name="agency_event_kind"),
            models.UniqueConstraint(
                fields=("execution", "generation"),
                condition=Q(kind__in=sorted(kind.value for kind in TERMINAL_EVENTS)),
                name="agency_event_one_terminal",
            ),
        )

    def __str__(self) -> str:
        return f"{self.execution_id} {self.seq} {self.kind}"


def with_event_seq(rows: "QuerySet[Execution]") -> "QuerySet[Execution]":
    """Executions that know the number of their newest event without a look at the log for each of them."""
    newest = Event.objects.filter(execution=OuterRef("pk")).order_by("-seq").values("seq")[:1]
    return rows.annotate(newest_seq=Coalesce(Subquery(newest), 0))


def newest_seq_sql(execution: str) -> str:
    """SQL for the number of the newest event, 0 if there is none, of the execution that a column names."""
    return (
        f"(SELECT COALESCE(MAX(v.seq), 0) FROM {Event._meta.db_table} v WHERE v.execution_id = {execution})"
    )
