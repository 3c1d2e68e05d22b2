"""Turns an enum into a CHECK constraint, so that enum and table cannot drift apart."""

from enum import StrEnum

from django.db.models import CheckConstraint, Q


def one_of(field: str, enum: type[StrEnum], *, name: str, nullable: bool = False) -> CheckConstraint:
    allowed = Q(**{f"{field}__in": sorted(item.value for item in enum)})
    if nullable:
        allowed |= Q(**{f"{field}__isnull": True})
    return CheckConstraint(condition=allowed, name=name)
