"""A project's own user model, without the usual user name."""

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models


class Person(AbstractUser):
    username = None
    email = models.EmailField(unique=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
