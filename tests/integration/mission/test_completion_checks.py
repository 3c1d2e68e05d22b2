"""A claim to be complete counts only if the project's checks pass: claimed and verified are two things."""

from collections.abc import Iterator
from typing import Any

import pytest

from agency.agent import ToolCall
from agency.errors import ConfigurationError, InvalidInput
from agency.execution.invariants import violations
from agency.mission.completion import BaseCompletionCheck, ClaimedCompletion, registry
from agency.models import ConfiguredAgent
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, mission

pytestmark = pytest.mark.django_db


class AllShops(BaseCompletionCheck):
    """Whether the last answer names the shop of Bonn."""

    NAME = "all-shops"
    DESCRIPTION = "The orders of all shops are sorted."
    seen: list[ClaimedCompletion] = []

    def check(self, claimed: ClaimedCompletion) -> str | None:
        self.seen.append(claimed)
        return None if "Bonn" in claimed.answer else "Sort the orders of Bonn too."


class Breaks(BaseCompletionCheck):
    NAME = "breaks"
    DESCRIPTION = "Nothing works."

    def check(self, claimed: ClaimedCompletion) -> str | None:
        raise LookupError("password=hunter2")


@pytest.fixture(autouse=True)
def checks() -> Iterator[None]:
    AllShops.seen.clear()
    with registry.isolated():
        registry.register(AllShops, Breaks)
        yield


def done() -> dict[str, Any]:
    return decision("complete", evidence="Sorted.")


def test_a_check_that_does_not_pass_becomes_the_next_instruction(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["Sorted Kiel.", "Sorted Bonn."], [done(), done()]
    loop = mission(agent, loop_prompt="Go.", completion_checks=["all-shops"])
    execution = run_until_parked(loop.dispatch())
    assert (execution.status, execution.iteration) == ("finished", 2)
    first, second = execution.iterations.order_by("n")
    assert (first.verdict, first.feedback) == ("continue", "Sort the orders of Bonn too.")
    assert first.decision["claimed"] == "complete"
    assert first.decision["checks"] == {
        "passed": [],
        "failed": "all-shops",
        "missing": "Sort the orders of Bonn too.",
    }
    assert second.decision["checks"] == {"passed": ["all-shops"], "failed": None, "missing": ""}
    claimed = AllShops.seen[0]
    assert (claimed.objective, claimed.answer, claimed.evidence) == (
        "Sort all orders.",
        "Sorted Kiel.",
        "Sorted.",
    )
    assert violations(5) == []


def test_a_claim_on_the_last_iteration_that_is_not_true_is_no_success(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["Sorted Kiel."], [done()]
    loop = mission(agent, loop_prompt="Go.", max_iterations=1, completion_checks=["all-shops"])
    execution = run_until_parked(loop.dispatch())
    assert (execution.status, execution.loop_status) == ("failed", "limit_reached")


def test_a_check_that_never_passes_asks_a_person_in_the_end(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["Sorted A.", "Sorted B.", "Sorted C."], [done()] * 3
    execution = run_until_parked(
        mission(agent, loop_prompt="Go.", completion_checks=["all-shops"]).dispatch()
    )
    assert (execution.status, execution.loop_status, execution.iteration) == ("interrupted", "blocked", 3)
    assert "Sort the orders of Bonn too." in execution.human_requests.get().message


def test_a_check_that_raises_has_not_passed_and_tells_no_secret(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["Sorted."], [done()]
    loop = mission(agent, loop_prompt="Go.", max_iterations=1, completion_checks=["breaks"])
    execution = run_until_parked(loop.dispatch())
    assert execution.loop_status == "limit_reached"
    told = execution.iterations.get().feedback
    assert "LookupError" in told
    assert "hunter2" not in told


def test_a_mission_that_names_an_unknown_check_is_not_dispatched(agent: ConfiguredAgent):
    with pytest.raises(InvalidInput, match="there is no completion check 'no-such'") as raised:
        mission(agent, loop_prompt="Go.", completion_checks=["no-such"]).dispatch()
    assert raised.value.errors[0]["path"] == "completion_checks[0]"


def test_a_check_that_a_release_lacks_holds_the_mission_for_one_that_has_it(
    agent: ConfiguredAgent, model: Model
):
    model.answers, model.decisions = ["Sorted Bonn."], [done()]
    execution = mission(agent, loop_prompt="Go.", completion_checks=["all-shops"]).dispatch()
    with registry.isolated():
        registry._registry._state.classes.clear()
        with pytest.raises(ConfigurationError, match="no completion check is registered as 'all-shops'"):
            run_until_parked(execution)
    execution = run_until_parked(execution)
    assert (execution.status, model.answers, model.decisions) == ("finished", [], [])


def test_a_check_without_a_name_is_refused_with_the_fix():
    class Nameless(BaseCompletionCheck):
        DESCRIPTION = "Checks."

        def check(self, claimed: ClaimedCompletion) -> str | None:
            return None

    with pytest.raises(ConfigurationError, match="NAME is missing. Set NAME to"):
        registry.register(Nameless)


def test_a_claim_without_proof_in_what_tools_returned_goes_on_and_is_on_record(
    agent: ConfiguredAgent, model: Model
):
    counted = ToolCall(tool_call_id="c1", name="count_words", arguments={"text": "two words"})
    model.answers = [counted, "Counted: everything is shipped."]
    model.decisions = [decision("complete", evidence="everything is shipped and paid for")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.", max_iterations=1).dispatch())
    assert execution.loop_status == "limit_reached"
    told = execution.iterations.get().decision
    assert (told["status"], told["claimed"]) == ("continue", "complete")


def unquoted() -> tuple[list[Any], list[dict[str, Any]]]:
    """A turn that calls a tool, and the claim of a supervisor that quotes nothing it returned."""
    counted = ToolCall(tool_call_id="c1", name="count_words", arguments={"text": "two words"})
    return [counted], [decision("complete", evidence="everything is shipped and paid for")]


def test_a_claim_without_a_quote_is_complete_if_every_check_passes(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = unquoted()
    model.answers += ["Sorted Bonn."]
    loop = mission(agent, loop_prompt="Go.", completion_checks=["all-shops"])
    execution = run_until_parked(loop.dispatch())
    assert (execution.status, execution.loop_status, execution.iteration) == ("finished", "completed", 1)
    told = execution.iterations.get().decision
    assert (told["status"], told["summary"]) == ("complete", "so far complete")
    assert told["checks"] == {"passed": ["all-shops"], "failed": None, "missing": ""}
    assert AllShops.seen[0].evidence == "everything is shipped and paid for"


def test_what_a_check_misses_of_a_claim_without_a_quote_is_the_next_instruction(
    agent: ConfiguredAgent, model: Model
):
    model.answers, model.decisions = unquoted()
    model.answers += ["Sorted Kiel.", "Sorted Bonn."]
    model.decisions += [decision("complete", evidence="still no quote of anything")]
    loop = mission(agent, loop_prompt="Go.", completion_checks=["all-shops"])
    execution = run_until_parked(loop.dispatch())
    assert (execution.status, execution.iteration) == ("finished", 2)
    first = execution.iterations.get(n=1)
    assert (first.verdict, first.feedback) == ("continue", "Sort the orders of Bonn too.")
    assert (first.decision["claimed"], first.decision["checks"]["failed"]) == ("complete", "all-shops")


def test_a_completion_that_nobody_claims_is_not_put_to_the_checks(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["Sorted Bonn."], [decision("continue", next_input="Sort Kiel.")]
    loop = mission(agent, loop_prompt="Go.", max_iterations=1, completion_checks=["all-shops"])
    assert run_until_parked(loop.dispatch()).loop_status == "limit_reached"
    assert AllShops.seen == []
