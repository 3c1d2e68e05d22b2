"""What somebody outside tells a running mission; a wait of that name ends by it."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Signal(models.Model):
    """One signal to one execution. `consumed_iteration` is the iteration that heard it."""

    OWNER_PATH = "execution__owner"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    execution = models.ForeignKey("agency.Execution", on_delete=models.CASCADE, related_name="signals")
    name = models.CharField(max_length=100)
    payload = models.JSONField(null=True)
    sent_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    consumed_iteration = models.PositiveIntegerField(null=True)

    class Meta:
        app_label = "agency"
        ordering = ("execution", "created_at", "id")
        indexes = (
            models.Index(
                fields=("execution", "name", "created_at"),
                condition=Q(consumed_iteration__isnull=True),
                name="agency_signal_waiting",
            ),
        )
        constraints = (models.CheckConstraint(condition=~Q(name=""), name="agency_signal_has_name"),)

    def __str__(self) -> str:
        return f"{self.name} to {self.execution_id}"
