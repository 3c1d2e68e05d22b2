"""Which agent, and how it is set: the row behind a run. How it thinks is `agency.agent.Agent`."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class ConfiguredAgent(models.Model):
    """An agent class chosen and set by its owner.

    `tool_settings` is keyed by the tool's `NAME`; `model` empty means the project's choice.
    """

    OWNER_PATH = "owner"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=200)
    agent_key = models.SlugField(max_length=100)
    model = models.CharField(max_length=300, blank=True, default="")
    prompt_variables = models.JSONField(default=dict, blank=True)
    prompt_override = models.TextField(null=True, blank=True)
    tool_settings = models.JSONField(default=dict, blank=True)
    limits = models.JSONField(default=dict, blank=True)
    file_upload = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        app_label = "agency"
        ordering = ("name", "id")
        constraints = (
            models.UniqueConstraint(fields=("owner", "name"), name="agency_agent_name_once_per_owner"),
            models.CheckConstraint(condition=~models.Q(agent_key=""), name="agency_agent_has_key"),
            models.CheckConstraint(condition=~models.Q(name=""), name="agency_agent_has_name"),
        )

    def __str__(self) -> str:
        return self.name
