"""A question to a person that parks an execution, and one item for each call that it is about."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agency.enums import HumanDecision, HumanRequestKind, HumanRequestStatus
from agency.models.choices import one_of

_OPEN = Q(status=HumanRequestStatus.OPEN.value)


class HumanRequest(models.Model):
    """What an execution wants of a person. `message` says it in one sentence.

    An execution that is `interrupted` has exactly one open request, every other has none. `iteration` is
    the one that goes on after the answer; `warned_at` is when the coming expiry was told.
    """

    OWNER_PATH = "execution__owner"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    execution = models.ForeignKey("agency.Execution", on_delete=models.CASCADE, related_name="human_requests")
    iteration = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    status = models.CharField(max_length=20, default=HumanRequestStatus.OPEN.value)
    message = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    warned_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "agency"
        ordering = ("-created_at", "-id")
        indexes = (models.Index(fields=("expires_at",), condition=_OPEN, name="agency_request_expiry"),)
        constraints = (
            one_of("kind", HumanRequestKind, name="agency_request_kind"),
            one_of("status", HumanRequestStatus, name="agency_request_status"),
            models.UniqueConstraint(fields=("execution",), condition=_OPEN, name="agency_request_one_open"),
            models.CheckConstraint(
                condition=(_OPEN & Q(closed_at__isnull=True)) | (~_OPEN & Q(closed_at__isnull=False)),
                name="agency_request_closed_at",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id} ({self.status})"


class HumanRequestItem(models.Model):
    """One call that a person decides on.

    `call_id` is `outer/inner` for a call in the run of another agent. `proposed` is what the model wanted,
    `effective` what the person made of it. `answer` is the answer to a question, or the result of a call
    that did happen. `digest` binds a decision to the call that was shown. `step_key` is the journal's key
    of a call that was cut.
    """

    OWNER_PATH = "request__execution__owner"

    request = models.ForeignKey(HumanRequest, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    call_id = models.TextField()
    tool = models.CharField(max_length=200, blank=True, default="")
    digest = models.CharField(max_length=64)
    proposed = models.JSONField(default=dict)
    answer_schema = models.JSONField(default=dict)
    step_key = models.CharField(max_length=500, blank=True, default="")
    decision = models.CharField(max_length=20, null=True)
    effective = models.JSONField(null=True)
    answer = models.JSONField(null=True)
    reason = models.TextField(blank=True, default="")
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "agency"
        ordering = ("request", "position")
        constraints = (
            one_of("kind", HumanRequestKind, name="agency_request_item_kind"),
            one_of("decision", HumanDecision, name="agency_request_item_decision", nullable=True),
            models.UniqueConstraint(fields=("request", "call_id"), name="agency_request_item_once"),
            models.UniqueConstraint(fields=("request", "position"), name="agency_request_item_place"),
            models.CheckConstraint(
                condition=Q(decision__isnull=True, decided_at__isnull=True)
                | Q(decision__isnull=False, decided_at__isnull=False),
                name="agency_request_item_decided_at",
            ),
        )

    def __str__(self) -> str:
        return f"{self.call_id} {self.decision or 'undecided'}"
