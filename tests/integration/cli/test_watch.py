"""`agency watch`: an execution followed by cards on a terminal, lines in a pipe, JSON for programs."""

import io
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from rich.console import Console

from agency.agent import LlmResponse, Message, Usage
from agency.agent.testing import ScriptedLlm
from agency.cli import sources
from agency.cli import watch as watching
from agency.cli.client import ServiceAway
from agency.cli.project import local_user
from agency.cli.sources import Rows
from agency.models import ApiToken, ConfiguredAgent, Execution
from agency.runtime.body import run_claimed
from agency.runtime.claim import claim
from agency.runtime.wiring import use_client
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, go_on, mission
from tests.integration.rows import execution_row

pytestmark = pytest.mark.django_db
Agency = Callable[..., Any]
DONE = decision("complete", evidence="All are sorted.")
WAIT = decision("wait", wait={"signal": "stock", "what_for": "the new stock"})
BLOCKED = decision("blocked", required_input={"question": "Which shop?"})


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    with use_client(made):
        yield made


@pytest.fixture
def start(model: Model) -> Callable[..., Execution]:
    """Dispatches a loop whose supervisor will decide so."""
    clerk = ConfiguredAgent.objects.create(owner=local_user(), name="Anna", agent_key="clerk")

    def begin(*decisions: dict[str, Any], most: int = 5) -> Execution:
        model.answers = [f"Answer {n}." for n in range(1, len(decisions) + 1)]
        model.decisions = list(decisions)
        return mission(clerk, loop_prompt="Go on.", max_iterations=most).dispatch()

    return begin


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> Callable[[Execution], None]:
    """While the command sleeps between two looks, the execution takes its next iteration."""

    def move(execution: Execution) -> None:
        def step(seconds: float) -> None:
            claimed = claim(execution.pk, ignore_due=True)
            assert claimed is not None
            run_claimed(claimed)

        monkeypatch.setattr(watching, "time", SimpleNamespace(sleep=step))

    return move


def test_a_loop_is_followed_to_its_end_in_lines(
    agency: Agency, start: Callable[..., Execution], moving: Callable[[Execution], None]
) -> None:
    execution = start(go_on("Sort B."), DONE)
    moving(execution)
    called = agency("watch", str(execution.pk)[:8])
    assert called.code == 0, called.err
    lines = called.out.splitlines()
    assert lines[0].strip() == "○ pending – waits for a free worker"
    said = [line.split("  (")[0] for line in lines if line.startswith("iteration")]
    assert said == ["iteration 1 of 5: ↻ continue", "iteration 2 of 5: ✓ complete"]
    for part in ("Sort all orders.", "Answer 1.", "Sort B.", "because continue", "All are sorted."):
        assert part in called.out
    assert "✓ completed – so far complete" in called.out
    assert '"response": "Answer 2."' in called.out
    assert "nothing goes on before `agency up`" in called.err


def test_with_until_waits_it_stops_at_a_wait_and_says_how_to_go_on(
    agency: Agency, start: Callable[..., Execution]
) -> None:
    execution = run_until_parked(start(WAIT))
    called = agency("watch", str(execution.pk), "--until", "waits")
    assert called.code == 0
    assert "waits for the signal stock: the new stock (at most until " in called.out
    assert f"agency mission signal {str(execution.pk)[:8]} stock sends it" in called.out


def test_what_an_open_iteration_has_spent_counts_while_it_waits(
    agency: Agency, start: Callable[..., Execution]
) -> None:
    execution = start(DONE)
    config = {**execution.metadata["loop_config"], "limits": {"tokens": 30}}
    execution.metadata = {**execution.metadata, "loop_config": config}
    execution.save(update_fields=["metadata"])
    said = LlmResponse([Message(role="assistant", content="Sorted.")], Usage(input_tokens=40))
    with use_client(ScriptedLlm(said)):
        run_until_parked(execution)
    called = agency("watch", str(execution.pk), "--until", "waits")
    assert "has spent 40 of its 30 tokens" in called.out
    assert "1/5  40 tokens" in called.out


def test_a_question_is_shown_with_the_command_that_answers_it(
    agency: Agency, start: Callable[..., Execution]
) -> None:
    execution = run_until_parked(start(BLOCKED))
    called = agency("watch", str(execution.pk), "--until", "waits")
    assert "‖ blocked – asks: Which shop?" in called.out
    assert f"agency inbox answer {str(execution.human_requests.get().pk)[:8]}" in called.out


def test_a_reached_limit_is_no_success_and_says_how_to_grant_more(
    agency: Agency, start: Callable[..., Execution]
) -> None:
    execution = run_until_parked(start(go_on("Sort B."), most=1))
    called = agency("watch", str(execution.pk))
    assert called.code == 1
    assert "▲ limit reached – The mission used all of its 1 iterations" in called.out
    assert f"agency mission extend {str(execution.pk)[:8]} 5" in called.out


def test_json_lines_hold_the_whole_log_each_iteration_and_the_end(
    agency: Agency, start: Callable[..., Execution], moving: Callable[[Execution], None]
) -> None:
    execution = start(go_on("Sort B."), DONE)
    moving(execution)
    lines = [json.loads(line) for line in agency("watch", str(execution.pk), "--json").out.splitlines()]
    assert [line["event"]["seq"] for line in lines if "event" in line] == list(
        range(1, execution.events.count() + 1)
    )
    assert [line["iteration"]["n"] for line in lines if "iteration" in line] == [1, 2]
    assert lines[-1]["execution"]["loop_status"] == "completed"


def test_on_a_terminal_there_are_cards_and_a_live_headline(
    start: Callable[..., Execution],
    moving: Callable[[Execution], None],
) -> None:
    execution = start(go_on("Sort B."), DONE)
    moving(execution)
    screen = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None, highlight=False)
    row = watching.follow(watching.Rows(), str(execution.pk), watching.Until.END, out=screen)
    shown = screen.file.getvalue()
    assert row["status"] == "finished"
    assert "╭─ iteration 1 of 5  ↻ continue" in shown
    assert "╭─ iteration 2 of 5  ✓ complete" in shown
    assert "loop ━━──────────" in shown
    assert "✓ completed – so far complete" in shown


def test_an_execution_of_a_definition_is_followed_too(agency: Agency, db: None) -> None:
    clerk = ConfiguredAgent.objects.create(owner=local_user(), name="Anna", agent_key="clerk")
    row = execution_row(clerk, status="finished", iteration=2, output={"words": 2})
    for n, verdict, feedback in ((1, "retry", "Count again."), (2, "passed", None)):
        row.iterations.create(
            n=n,
            claim_id=uuid4(),
            fence=n,
            verdict=verdict,
            feedback=feedback,
            event_seq=n,
            started_at=row.started_at,
        )
    called = agency("watch", str(row.pk))
    assert called.code == 0, called.err
    for part in (
        "iteration 1: ↻ retry",
        "Count again.",
        "iteration 2: ✓ passed",
        "count-words",
        '"words": 2',
    ):
        assert part in called.out


def test_text_that_would_steer_the_terminal_is_not_passed_on(
    agency: Agency, start: Callable[..., Execution], model: Model
) -> None:
    execution = start(DONE)
    model.answers = ["clear\x1b[2J\x07 [bold]not markup[/bold]"]
    run_until_parked(execution)
    called = agency("watch", str(execution.pk))
    assert "\x1b" not in called.out
    assert "[bold]not markup[/bold]" in called.out


@pytest.mark.django_db(transaction=True)
def test_a_service_elsewhere_is_read_over_its_api(
    agency: Agency, start: Callable[..., Execution], live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = run_until_parked(start(go_on("Sort B."), DONE))
    monkeypatch.setenv("AGENCY_TOKEN", ApiToken.issue(execution.owner, "tests")[1])
    there = agency("watch", str(execution.pk), "--url", live_server.url)
    assert there.code == 0, there.err
    assert there.out == agency("watch", str(execution.pk)).out


class Restarted(Rows):
    """A service that answers, is away for a while, and is back."""

    def __init__(self, away: int, since: int = 1) -> None:
        self.away, self.answers = away, since

    def execution(self, execution_id: str) -> dict[str, Any]:
        if self.answers <= 0 < self.away:
            self.away -= 1
            raise ServiceAway("The service does not answer.")
        self.answers -= 1
        return super().execution(execution_id)


def test_a_service_that_is_started_anew_is_waited_for(
    start: Callable[..., Execution], monkeypatch: pytest.MonkeyPatch
) -> None:
    execution_id = str(run_until_parked(start(DONE)).pk)
    monkeypatch.setattr(sources, "TRY_EVERY", 0.0)
    source = sources.Patient(Restarted(away=3))
    assert [source.execution(execution_id)["status"] for _ in range(2)] == ["finished"] * 2
    with pytest.raises(ServiceAway):
        sources.Patient(Restarted(away=1, since=0)).execution(execution_id)
    monkeypatch.setattr(sources, "AWAY_FOR", 0.0)
    source = sources.Patient(Restarted(away=1))
    source.execution(execution_id)
    with pytest.raises(ServiceAway):
        source.execution(execution_id)


def test_a_service_elsewhere_needs_its_token(agency: Agency, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENCY_TOKEN", raising=False)
    called = agency("watch", "1", "--url", "http://127.0.0.1:9")
    assert (called.code, "AGENCY_TOKEN is not set" in called.err) == (2, True)
    monkeypatch.setenv("AGENCY_TOKEN", "agency_x")
    called = agency("watch", "1", "--url", "http://127.0.0.1:9/")
    assert (called.code, "does not answer" in called.err) == (1, True)
