"""Large bodies beside the rows that refer to them: what was cut there is whole here."""

from django.db import models
from django.db.models.functions import Now


class Blob(models.Model):
    """A text by its SHA-256, once an execution; `size` is in bytes of UTF-8.

    Events and results name it by that SHA-256. Kept as long as the execution.
    """

    OWNER_PATH = "execution__owner"

    execution = models.ForeignKey(
        "agency.Execution", on_delete=models.CASCADE, related_name="blobs", db_index=False
    )
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    content = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        app_label = "agency"
        constraints = (models.UniqueConstraint(fields=("execution", "sha256"), name="agency_blob_once"),)

    def __str__(self) -> str:
        return f"{self.execution_id} {self.sha256[:12]} ({self.size:,} bytes)"
