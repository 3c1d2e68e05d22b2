"""API tokens: stored as a digest, shown once."""

import hashlib
import secrets
import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

PREFIX = "agency_"


def digest(secret: str) -> str:
    """SHA-256 is enough: the secret has 256 random bits, so there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiToken(models.Model):
    """A bearer token of a user. `hint` is the secret's beginning, to tell tokens apart."""

    OWNER_PATH = "owner"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=200)
    hint = models.CharField(max_length=20)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "agency"

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"

    @classmethod
    def issue(cls, owner: Any, name: str) -> tuple["ApiToken", str]:
        """A new token and its secret; the secret cannot be had again."""
        secret = PREFIX + secrets.token_urlsafe(32)
        token = cls.objects.create(owner=owner, name=name, hint=secret[:14], digest=digest(secret))
        return token, secret
