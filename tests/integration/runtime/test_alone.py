"""Which execution is put off for a process of its own, and which waits for something else."""

from typing import Any

import pytest
from django.db.models import DateTimeField, Value
from django.db.models.functions import Cast

from agency.models import Execution, ProviderGate
from agency.models.clock import Now
from agency.runtime.alone import reserve
from agency.runtime.claim import claim
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db


def test_the_oldest_due_row_that_has_lost_workers_is_put_off_once(submit: Submit) -> None:
    execution = submit()
    Execution.objects.update(claim_count=3)
    submit()
    assert [reserve(), reserve()] == [str(execution.pk), None]


def test_a_row_that_is_due_at_a_whole_second_is_found_too(submit: Submit) -> None:
    execution = submit()
    # As the database's clock writes it, which is not how SQLite is given a Python datetime.
    moment = Cast(Value("2026-01-01 12:00:00.000000"), DateTimeField())
    Execution.objects.update(claim_count=3, next_run_at=moment)
    assert reserve() == str(execution.pk)


def test_a_row_whose_provider_is_left_alone_gets_no_process(submit: Submit) -> None:
    execution = submit()
    Execution.objects.update(claim_count=3)
    gate = ProviderGate.objects.create(provider=execution.provider, not_before=Now(60))
    assert reserve() is None
    gate.delete()
    assert reserve() == str(execution.pk)


def test_a_row_for_which_a_limit_leaves_no_room_gets_no_process_and_hides_no_other(
    submit: Submit, settings: Any
) -> None:
    settings.AGENCY = {"CONCURRENCY_PER_PROVIDER": {"full": 1}}
    running, crowded, other = submit(), submit(), submit()
    Execution.objects.filter(pk__in=[running.pk, crowded.pk]).update(provider="full")
    assert claim(running.pk) is not None
    Execution.objects.filter(pk__in=[crowded.pk, other.pk]).update(claim_count=3)
    assert [reserve(), reserve(), reserve()] == [None, str(other.pk), None]
    settings.AGENCY = {}
    Execution.objects.filter(pk=crowded.pk).update(next_run_at=Now(-1))
    assert reserve() == str(crowded.pk)
