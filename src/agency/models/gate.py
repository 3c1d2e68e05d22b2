"""What is known of a provider in trouble: the row that keeps a storm of calls from its door."""

from django.db import models
from django.db.models.functions import Now


class ProviderGate(models.Model):
    """One provider that has refused or failed calls; a provider without trouble has no row.

    Until `not_before` no execution that needs the provider is claimed. `failures` counts calls that
    failed in a row. `interval` is the pause in seconds that a rate limit has taught to leave between
    two calls, `ceiling` the one at which it was last exceeded, `next_call_at` when the next may begin.
    """

    provider = models.CharField(max_length=100, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True)
    interval = models.FloatField(default=0.0)
    ceiling = models.FloatField(default=0.0)
    next_call_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        app_label = "agency"

    def __str__(self) -> str:
        return self.provider
