"""A stored conversation and its messages: a projection of the events, written in the same commit."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from agency.enums import MessageRole
from agency.models.choices import one_of


class Thread(models.Model):
    """A conversation with one agent."""

    OWNER_PATH = "owner"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    agent = models.ForeignKey("agency.ConfiguredAgent", on_delete=models.PROTECT, related_name="threads")
    title = models.CharField(max_length=300, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        app_label = "agency"

    def __str__(self) -> str:
        return self.title or str(self.id)


class Message(models.Model):
    """One message of a thread. `event_seq` is the event that holds the full content.

    `said_by` tells apart whom a user message is from: empty for the order's owner, else `supervisor`,
    `person` (an answer), `signal`, `watch`, `time`, `run_now` or `extension`.
    """

    OWNER_PATH = "thread__owner"

    thread = models.ForeignKey(
        Thread, on_delete=models.CASCADE, related_name="messages", db_index=False, db_constraint=False
    )
    seq = models.BigIntegerField()
    role = models.CharField(max_length=20)
    content = models.TextField(blank=True, default="")
    said_by = models.CharField(max_length=20, blank=True, default="", db_default="")
    iteration = models.IntegerField(default=0)
    event_seq = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        app_label = "agency"
        ordering = ("thread", "seq")
        constraints = (
            models.UniqueConstraint(fields=("thread", "seq"), name="agency_message_seq_once"),
            one_of("role", MessageRole, name="agency_message_role"),
        )

    def __str__(self) -> str:
        return f"{self.role}: {self.content[:60]}"
