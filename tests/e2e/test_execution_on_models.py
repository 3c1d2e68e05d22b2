"""A durable execution on a real model: validators judge, the ledger keeps each attempt, the end is honest."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agency.execution import registry, service
from agency.models import ConfiguredAgent, Execution
from agency.testing import run_until_parked
from tests.e2e.local_models import one_server

pytestmark = pytest.mark.django_db
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def read(
    agency_agent: Callable[..., ConfiguredAgent], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], Execution]]:
    """`read(document, model)`: the ended execution of the demo's definition on one of its documents."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(EXAMPLES)])
    from records.agents import RecordsClerk
    from records.executions import ExtractRecords
    from records.samples import samples

    known = {sample.name: sample for sample in samples()}

    def run(document: str, model: str) -> Execution:
        agent = agency_agent("records-clerk", model=model)
        return run_until_parked(service.submit("extract-records", agent, known[document].input).execution)

    with registry.isolated(empty=True):
        registry.register(RecordsClerk, ExtractRecords)
        yield run


def check_the_record(execution: Execution) -> None:
    """What holds of every ended execution, whatever its model was able to do."""
    assert execution.status in {"finished", "failed"}
    assert (execution.failure_code is None) == (execution.status == "finished")
    seqs = list(execution.events.values_list("seq", flat=True))
    assert seqs == list(range(1, execution.event_seq + 1))
    attempts = list(execution.iterations.order_by("n").values_list("n", flat=True))
    assert attempts == list(range(1, execution.iteration + 1))
    calls = [row.usage for row in execution.events.filter(call__isnull=False)]
    assert execution.usage["input_tokens"] == sum(one["input_tokens"] for one in calls) > 0
    assert execution.usage["output_tokens"] == sum(one["output_tokens"] for one in calls) > 0


@pytest.mark.local_model
def test_an_execution_on_the_small_model_ends_in_an_honest_state(
    read: Callable[[str, str], Execution],
) -> None:
    for model in one_server("small"):
        execution = read("meeting-note", model)
        check_the_record(execution)
        if execution.status == "finished":
            assert execution.output["kind"] in {"invoice", "order", "cv", "meeting_note", "advert"}
        else:
            assert execution.failure_code == "max_retries_exceeded" and execution.failure_summary


@pytest.mark.large_model
def test_an_execution_on_the_default_model_reads_a_document_right(
    read: Callable[[str, str], Execution],
) -> None:
    from records.compare import is_right
    from records.samples import samples

    expected = next(sample.expected for sample in samples() if sample.name == "meeting-note")
    for model in one_server("default"):
        execution = read("meeting-note", model)
        check_the_record(execution)
        assert execution.status == "finished"
        assert is_right(execution.output, expected)
