"""The example's mission on a real model: it works through a tray and ends in a state that is true."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agency.enums import HumanDecision, HumanRequestKind, LoopStatus
from agency.execution import answering, registry
from agency.execution.invariants import violations
from agency.human.answers import ItemAnswer
from agency.mission.completion import registry as completion
from agency.models import ConfiguredAgent, Execution, Mission
from agency.testing import run_until_parked
from tests.e2e.local_models import one_server

pytestmark = pytest.mark.django_db
EXAMPLES = Path(__file__).parents[2] / "examples"
PAPERS = {"meeting-note": "meeting_note", "invoice-garden": "invoice"}


@pytest.fixture
def carry_out(
    agency_agent: Callable[..., ConfiguredAgent], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[str, int], Execution]]:
    """`carry_out(model, rounds)`: the mission's execution, with every call that asks agreed to."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(EXAMPLES)])
    monkeypatch.setenv("AGENCY_HOME", str(tmp_path))
    from missions.filing import tray
    from missions.filing.agents import FilingClerk
    from missions.filing.missions import ORDER, AllPapersFiled
    from records.samples import samples

    for sample in samples():
        if sample.name in PAPERS:
            tray.put(sample.name, sample.text)

    def run(model: str, rounds: int) -> Execution:
        agent = agency_agent("filing-clerk", model=model)
        mission = Mission.objects.create(owner=agent.owner, agent=agent, max_iterations=rounds, **ORDER)
        execution = run_until_parked(mission.dispatch())
        while agree(execution):
            execution = run_until_parked(execution)
        return execution

    with registry.isolated(empty=True), completion.isolated():
        registry.register(FilingClerk)
        completion.register(AllPapersFiled)
        yield run


def agree(execution: Execution) -> bool:
    """Agree to the calls that the execution waits with, if that is what it waits for."""
    request = execution.human_requests.filter(status="open", kind=HumanRequestKind.CONFIRM_TOOL.value).first()
    if request is None:
        return False
    given = [ItemAnswer(item.call_id, item.digest, HumanDecision.APPROVE) for item in request.items.all()]
    return answering.answer(request.pk, given, execution.owner).refused is None


def check_the_record(execution: Execution) -> None:
    """What holds of every mission, whatever its model was able to do."""
    assert violations(5) == []
    assert (execution.failure_code is None) == (execution.status != "failed")
    seqs = list(execution.events.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, execution.event_seq + 1))
    rounds = list(execution.iterations.order_by("n").values_list("n", flat=True))
    assert rounds == list(range(1, execution.iteration + 1))
    calls = [row.usage for row in execution.events.filter(usage__isnull=False)]
    for kind in ("input_tokens", "output_tokens", "model_calls"):
        assert execution.usage[kind] == sum(one[kind] for one in calls) > 0


def filed() -> dict[str, str]:
    """What the cabinet holds: kinds by paper."""
    from missions.filing import tray

    records = {paper: tray.record_of(paper) for paper in PAPERS}
    return {paper: record["kind"] for paper, record in records.items() if record is not None}


@pytest.mark.local_model
def test_a_mission_of_three_iterations_on_the_small_model_ends_in_an_honest_state(
    carry_out: Callable[[str, int], Execution],
) -> None:
    for model in one_server("small"):
        execution = carry_out(model, 3)
        check_the_record(execution)
        assert 1 <= execution.iteration <= 3
        match LoopStatus(execution.loop_status):
            case LoopStatus.COMPLETED:
                assert filed().keys() == PAPERS.keys()
            case LoopStatus.LIMIT_REACHED:
                assert (execution.failure_code, execution.iteration) == ("limit_reached", 3)
            case LoopStatus.FAILED:
                assert execution.failure_code in {"mission_failed", "supervisor_invalid", "limit_reached"}
            case LoopStatus.BLOCKED:
                assert execution.human_requests.get(status="open").message
            case LoopStatus.WAITING:
                assert execution.next_run_at is not None
            case other:
                pytest.fail(f"a mission came to rest as {other}")


@pytest.mark.large_model
def test_a_mission_on_the_default_model_completes_and_asks_before_it_files_the_invoice(
    carry_out: Callable[[str, int], Execution],
) -> None:
    for model in one_server("default"):
        execution = carry_out(model, 6)
        check_the_record(execution)
        assert (execution.status, execution.loop_status) == ("finished", "completed")
        assert filed() == PAPERS
        assert execution.loop_decision["checks"] == {
            "passed": ["all-papers-filed"],
            "failed": None,
            "missing": "",
        }
        answered = execution.human_requests.get()
        assert (answered.kind, answered.status) == ("confirm_tool", "answered")
        assert answered.items.get().proposed["paper"] == "invoice-garden"
