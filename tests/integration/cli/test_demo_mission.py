"""The demo's mission as it is followed, and what the demo does where a person is needed or a wait begins."""

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

from agency.cli.client import Client
from agency.cli.demo_mission import Followed
from agency.models import ApiToken, ConfiguredAgent, Execution
from agency.runtime.body import run_claimed
from agency.runtime.claim import claim
from agency.runtime.wiring import use_client
from tests.integration.mission.scripted import Model, decision, go_on, mission

pytestmark = pytest.mark.django_db(transaction=True)
DONE = decision("complete", evidence="All are sorted.")
Follow = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def follow(agency_agent: Callable[..., ConfiguredAgent], live_server: Any) -> Iterator[Follow]:
    """`follow(*decisions)`: a loop whose supervisor decides so, followed to its end, and what was printed."""
    model, clerk, out = Model(), agency_agent("clerk"), io.StringIO()

    def run(*decisions: dict[str, Any]) -> tuple[dict[str, Any], str]:
        model.answers = [f"Answer {n}." for n in range(1, len(decisions) + 1)]
        model.decisions = list(decisions)
        execution = mission(clerk, loop_prompt="Go on.").dispatch()
        client = Client(live_server.url, ApiToken.issue(clerk.owner, "tests")[1])
        followed = Followed(client, Console(file=out, width=200), str(execution.pk), pause=worker(execution))
        return followed.to_its_end(), out.getvalue()

    with use_client(model):
        yield run


def worker(execution: Execution) -> Callable[[float], None]:
    """Takes the next iteration, if there is one, in each pause between two looks."""

    def work(seconds: float) -> None:
        claimed = claim(execution.pk, ignore_due=True)
        if claimed is not None:
            run_claimed(claimed)

    return work


def test_rounds_and_decisions_are_told_once_each_in_their_order(follow: Follow) -> None:
    ended, said = follow(go_on("Sort Kiel."), DONE)
    assert (ended["status"], ended["iteration"]) == ("finished", 2)
    told = ["Loop 1/10", "Answer 1.", "decision: continue", "next: Sort Kiel.", "Loop 2/10", "Answer 2."]
    places = [said.index(what) for what in [*told, "decision: complete"]]
    assert places == sorted(places)
    assert said.count("Answer 1.") == 1
    assert '"status"' not in said  # the supervisor's own words are told as its decision


def test_a_wait_is_ended_since_nobody_waits_in_a_demo(follow: Follow) -> None:
    ended, said = follow(decision("wait", wait={"seconds": 900, "what_for": "the new stock"}), DONE)
    assert (ended["status"], ended["loop_status"]) == ("finished", "completed")
    assert "the new stock" in said and "is cut short" in said


def test_a_question_that_only_a_person_can_answer_ends_it_cancelled(follow: Follow) -> None:
    ended, said = follow(decision("blocked", required_input={"question": "Which shop?"}))
    assert (ended["status"], ended["loop_status"]) == ("cancelled", "cancelled")
    assert "Which shop?" in said and "Nobody is here to answer" in said
