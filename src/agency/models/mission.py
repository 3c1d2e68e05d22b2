"""A standing order in words: objective, agent, and perhaps the instructions for a loop."""

import importlib
import uuid
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

if TYPE_CHECKING:
    from agency.models.execution import Execution

MOST_ITERATIONS = 100
LONGEST_DELAY = 86_400


class Mission(models.Model):
    """What an agent is to reach. The mode is derived from `loop_prompt` alone: NULL is one-shot.

    `supervisor_model` empty means the agent's own. `completion_checks` are names of registered checks that
    must pass before a completion counts. `limits` may hold `tokens` and `cost` (US dollars) of an execution,
    beyond which a person is asked, `seconds` of the execution and `iteration_seconds` (deadlines), and
    `failed_turns` in a row that end it. Editing changes later dispatches only. One that was removed but has
    executions stays, with `archived_at`. `always_allow` names tools whose calls ask nobody in any of its
    executions, and whether that holds still; it counts at once, and `save()` leaves it as it is in the row.
    """

    OWNER_PATH = "owner"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    agent = models.ForeignKey("agency.ConfiguredAgent", on_delete=models.PROTECT, related_name="missions")
    name = models.CharField(max_length=200)
    prompt = models.TextField()
    loop_prompt = models.TextField(null=True, blank=True)
    max_iterations = models.PositiveIntegerField(default=10)
    loop_delay_seconds = models.PositiveIntegerField(default=0)
    supervisor_model = models.CharField(max_length=300, blank=True, default="")
    completion_checks = models.JSONField(default=list, blank=True)
    limits = models.JSONField(default=dict, blank=True)
    always_allow = models.JSONField(default=dict, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        app_label = "agency"
        ordering = ("name", "id")
        constraints = (
            models.CheckConstraint(
                condition=~Q(name="") & ~Q(prompt=""), name="agency_mission_says_something"
            ),
            models.CheckConstraint(
                condition=Q(loop_prompt__isnull=True) | ~Q(loop_prompt=""), name="agency_mission_loop_or_null"
            ),
            models.CheckConstraint(
                condition=Q(max_iterations__gte=1, max_iterations__lte=MOST_ITERATIONS),
                name="agency_mission_iterations",
            ),
            models.CheckConstraint(
                condition=Q(loop_delay_seconds__lte=LONGEST_DELAY), name="agency_mission_delay"
            ),
        )

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.loop_prompt is not None and not self.loop_prompt.strip():
            self.loop_prompt = None
        if not self._state.adding and kwargs.get("update_fields") is None and not args:
            # A copy that was read before a person took a permission back must not bring it to life again.
            kept = {"id", "always_allow"}
            kwargs["update_fields"] = [one.name for one in self._meta.concrete_fields if one.name not in kept]
        super().save(*args, **kwargs)

    @property
    def is_loop(self) -> bool:
        return self.loop_prompt is not None

    def dispatch(self, *, owner: Any = None, idempotency_key: str | None = None) -> "Execution":
        """Create an execution of this mission in the caller's transaction; it runs after the commit.

        The same `idempotency_key` gives the same execution again.
        """
        service = importlib.import_module("agency.mission.service")
        return service.dispatch(self, owner=owner, idempotency_key=idempotency_key).execution
