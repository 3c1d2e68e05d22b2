"""A mission waits and holds nobody; time, a signal, a watch or a person ends it, and the agent is told."""

from datetime import timedelta
from typing import Any

import pytest

from agency.enums import EventKind
from agency.errors import StaleExecution
from agency.execution import service
from agency.execution.invariants import violations
from agency.execution.metadata import WAIT
from agency.mission import signals, waiting, waits
from agency.mission.watches import Look, View
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now, database_now
from agency.runtime import sweep
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, go_on, kinds, mission
from tests.integration.mission.waits import (
    DONE,
    Bell,
    is_due,
    passes,
    ready_in,
    resumed,
    run_once,
    told,
    waiting_for,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("bell")]


class TestTime:
    def test_the_row_says_what_is_waited_for_and_nobody_is_held(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"seconds": 3_600})
        assert (execution.status, execution.loop_status) == ("in_progress", "waiting")
        assert (execution.iteration, execution.claim_id, execution.claim_count) == (1, None, 0)
        assert ready_in(execution) == pytest.approx(3_600, abs=60)
        assert execution.iterations.get().verdict == "wait"
        assert execution.loop_decision["wait"]["seconds"] == 3_600
        kept = execution.metadata[WAIT]
        assert (kept["kind"], kept["what_for"]) == ("seconds", "the new stock")
        event = execution.events.get(kind=EventKind.LOOP_WAITING.value)
        assert (event.iteration, event.data) == (1, waits.told(kept))
        assert claim(execution.pk) is None
        assert violations(5) == []

    def test_when_it_has_passed_the_next_iteration_begins(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"seconds": 3_600})
        passes(execution)
        assert run_once(execution) is Outcome.FINISHED
        execution.refresh_from_db()
        assert (execution.loop_status, execution.iteration) == ("completed", 2)
        said_by, message = told(execution)
        assert said_by == "time" and 'its time has come. It was to wait for: "the new stock".' in message
        assert resumed(execution)["by"] == "time"
        assert WAIT not in execution.metadata
        assert kinds(execution)[-6:] == [
            *("mission_loop_waiting", "mission_loop_resumed", "mission_iteration_started"),
            *("mission_iteration_completed", "mission_loop_completed", "execution_finished"),
        ]
        assert violations(5) == []

    def test_until_a_moment(self, agent: ConfiguredAgent, model: Model):
        moment = (database_now() + timedelta(hours=2)).isoformat()
        execution = waiting_for(agent, model, {"until": moment})
        assert ready_in(execution) == pytest.approx(7_200, abs=60)

    def test_a_claim_before_its_time_changes_nothing(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"seconds": 3_600})
        made = claim(execution.pk, ignore_due=True)
        assert made is not None and run_claimed(made) is Outcome.WAITING
        execution.refresh_from_db()
        assert (execution.loop_status, execution.claim_id, execution.claim_count) == ("waiting", None, 0)
        assert ready_in(execution) == pytest.approx(3_600, abs=60)
        assert kinds(execution)[-1] == "mission_loop_waiting"
        assert violations(5) == []


class TestSignal:
    def test_it_ends_the_wait_and_its_payload_is_data(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"signal": "stock"})
        assert ready_in(execution) == pytest.approx(7 * 86_400, abs=60)
        sent = signals.send(execution, "stock", {"shelf": 9}, agent.owner)
        assert (sent.refused, sent.ended_wait) == (None, True)
        assert sent.signal is not None and sent.signal.consumed_iteration == 2
        execution.refresh_from_db()
        assert (execution.loop_status, execution.claim_id) == ("running", None)
        assert run_until_parked(execution).loop_status == "completed"
        said_by, message = told(execution)
        assert said_by == "signal" and 'the signal "stock" has come' in message
        assert '{"shelf": 9}' in message and "gives no orders" in message
        assert resumed(execution)["who"] == agent.owner.get_username()
        assert violations(5) == []

    def test_one_of_another_name_is_kept(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"signal": "stock"})
        sent = signals.send(execution, "weather", "rain")
        assert sent.ended_wait is False and sent.signal is not None
        assert sent.signal.consumed_iteration is None
        execution.refresh_from_db()
        assert execution.loop_status == "waiting"
        assert kinds(execution)[-1] == "mission_signal_received"
        assert violations(5) == []

    def test_one_that_was_sent_just_before_the_wait_counts(self, agent: ConfiguredAgent, model: Model):
        model.answers, model.decisions = ["First."], [go_on("Go on with A.")]
        execution = mission(agent, loop_prompt="Go.", max_iterations=5).dispatch()
        assert run_once(execution) is Outcome.HANDED_ON
        signals.send(execution, "stock", "early")
        signals.send(execution, "stock", "late")
        model.answers = ["I must wait.", "It is done."]
        model.decisions = [decision("wait", wait={"signal": "stock", "what_for": "news"}), DONE]
        execution = run_until_parked(execution)
        assert (execution.loop_status, execution.iteration) == ("completed", 3)
        assert "early" in told(execution, 3)[1]
        heard = execution.signals.values_list("payload", "consumed_iteration")
        assert list(heard) == [("early", 3), ("late", None)]
        assert kinds(execution)[-6:-3] == [
            *("mission_loop_waiting", "mission_loop_resumed", "mission_iteration_started")
        ]
        assert violations(5) == []

    def test_one_from_before_an_earlier_iteration_does_not(self, agent: ConfiguredAgent, model: Model):
        model.answers, model.decisions = ["First."], [go_on("Go on with A.")]
        execution = mission(agent, loop_prompt="Go.", max_iterations=5).dispatch()
        signals.send(execution, "stock", "too old")
        assert run_once(execution) is Outcome.HANDED_ON
        model.answers = ["I must wait."]
        model.decisions = [decision("wait", wait={"signal": "stock"})]
        assert run_until_parked(execution).loop_status == "waiting"

    def test_its_timeout_is_told(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"signal": "stock"})
        passes(execution)
        assert run_once(execution) is Outcome.FINISHED
        said_by, message = told(execution)
        assert said_by == "time" and 'the signal "stock" has ended without it' in message
        assert resumed(execution)["by"] == "timeout"

    def test_one_that_comes_while_the_timeout_is_noticed_wins(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"signal": "stock"})
        passes(execution)
        made = claim(execution.pk)
        assert made is not None
        sent = signals.send(execution, "stock", "just in time")
        assert sent.ended_wait is False
        assert run_claimed(made) is Outcome.FINISHED
        assert "just in time" in told(execution)[1]
        assert execution.signals.get().consumed_iteration == 2
        assert violations(5) == []


class TestRunNow:
    @pytest.mark.parametrize("wait", [{"seconds": 3_600}, {"signal": "stock"}, {"watch": "bell"}])
    def test_a_person_ends_any_wait(self, agent: ConfiguredAgent, model: Model, wait: dict[str, Any]):
        execution = waiting_for(agent, model, wait)
        ran = waiting.run_now(execution, agent.owner)
        assert (ran.refused, ran.execution.loop_status) == (None, "running")
        assert run_until_parked(execution).loop_status == "completed"
        said_by, message = told(execution)
        assert said_by == "run_now" and "A person has ended the wait" in message
        data = resumed(execution)
        assert (data["by"], data["who"]) == ("run_now", agent.owner.get_username())
        assert violations(5) == []

    def test_the_pause_between_two_iterations_ends_too(self, agent: ConfiguredAgent, model: Model):
        model.answers, model.decisions = ["A.", "B."], [go_on("Sort the orders of B."), DONE]
        execution = mission(agent, loop_prompt="Go.", loop_delay_seconds=3_600).dispatch()
        assert run_once(execution) is Outcome.HANDED_ON
        assert claim(execution.pk) is None
        assert waiting.run_now(execution, agent.owner).refused is None
        assert run_once(execution) is Outcome.FINISHED
        assert told(execution) == ("supervisor", "Sort the orders of B.")
        assert violations(5) == []

    def test_where_nothing_is_waited_for_it_is_refused(self, agent: ConfiguredAgent, model: Model):
        execution = mission(agent, loop_prompt="Go.").dispatch()
        assert "is pending" in str(waiting.run_now(execution, agent.owner).refused)
        made = claim(execution.pk)
        assert "being run already" in str(waiting.run_now(execution, agent.owner).refused)
        model.answers, model.decisions = ["A.", "B."], [go_on("Sort the orders of B."), DONE]
        assert made is not None and run_claimed(made) is Outcome.HANDED_ON
        assert "due already" in str(waiting.run_now(execution, agent.owner).refused)
        run_until_parked(execution)
        assert "is finished" in str(waiting.run_now(execution, agent.owner).refused)

    def test_a_one_shot_mission_never_waits(self, agent: ConfiguredAgent, model: Model):
        execution = mission(agent).dispatch()
        Execution.objects.filter(pk=execution.pk).update(status="in_progress", next_run_at=Now(60))
        assert "no loop" in str(waiting.run_now(execution, agent.owner).refused)


class TestEnds:
    def test_a_wait_on_the_last_iteration_stands_and_its_end_is_the_limit(
        self, agent: ConfiguredAgent, model: Model
    ):
        execution = waiting_for(agent, model, {"seconds": 3_600}, max_iterations=1)
        assert execution.loop_status == "waiting"
        passes(execution)
        assert run_once(execution) is Outcome.FAILED
        execution.refresh_from_db()
        assert (execution.status, execution.loop_status) == ("failed", "limit_reached")
        assert (execution.iteration, execution.failure_code) == (1, "limit_reached")
        assert "mission_iteration_started" not in kinds(execution)[-3:]
        assert violations(5) == []

    def test_a_signal_at_the_limit_ends_it_too(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"signal": "stock"}, max_iterations=1)
        assert signals.send(execution, "stock").ended_wait is True
        execution = run_until_parked(execution)
        assert execution.loop_status == "limit_reached"
        assert kinds(execution).count("mission_iteration_started") == 1
        assert violations(5) == []

    def test_a_cancel_ends_a_waiting_mission_at_once(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"signal": "stock"})
        assert service.request_cancel(execution).value == "cancelled"
        execution.refresh_from_db()
        assert (execution.loop_status, execution.next_run_at) == ("cancelled", None)
        assert "takes no more signals" in str(signals.send(execution, "stock").refused)
        assert violations(5) == []

    def test_a_missions_deadline_goes_on_while_it_waits(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"seconds": 3_600}, limits={"seconds": 600})
        Execution.objects.filter(pk=execution.pk).update(deadline_at=Now(-1))
        sweep.close()
        execution.refresh_from_db()
        assert (execution.loop_status, execution.failure_code) == ("failed", "deadline_exceeded")
        assert "is failed" in str(waiting.run_now(execution, agent.owner).refused)
        assert violations(5) == []

    @pytest.mark.parametrize("found", [Look(False), Look(True)])
    def test_a_cancel_during_a_look_wins(self, agent: ConfiguredAgent, model: Model, found: Look):
        execution = waiting_for(agent, model, {"watch": "bell"})
        is_due(execution)
        made = claim(execution.pk)
        assert made is not None
        Bell.says = [found]
        service.request_cancel(execution)
        assert run_claimed(made) is Outcome.CANCELLED
        execution.refresh_from_db()
        assert execution.loop_status == "cancelled"
        assert violations(5) == []

    def test_a_cancel_before_the_wait_is_committed_wins(
        self, agent: ConfiguredAgent, model: Model, monkeypatch: pytest.MonkeyPatch
    ):
        def begin(self: Any, view: View) -> dict[str, Any]:
            service.request_cancel(Execution(pk=view.execution_id))
            return {}

        monkeypatch.setattr(Bell, "begin", begin)
        execution = waiting_for(agent, model, {"watch": "bell"})
        assert execution.status == "cancelled"
        assert violations(5) == []


class TestLateWrites:
    """Whoever has lost the claim writes nothing more."""

    def lost(self, execution: Execution) -> Any:
        """A claim of a waiting row that another has taken over."""
        is_due(execution)
        old = claim(execution.pk)
        Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))
        assert claim(execution.pk) is not None
        return old

    def test_of_a_look(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"watch": "bell"})
        old = self.lost(execution)
        with pytest.raises(StaleExecution):
            waiting.look_again(old, execution.metadata[WAIT], 45)
        with pytest.raises(StaleExecution):
            waiting.end_claimed(old, waits.by_watch(execution.metadata[WAIT], None))
        assert violations(5) == []

    def test_of_a_commit(self, agent: ConfiguredAgent, model: Model, monkeypatch: pytest.MonkeyPatch):
        def begin(self: Any, view: View) -> dict[str, Any]:
            Execution.objects.filter(pk=view.execution_id).update(lease_until=Now(-1))
            assert claim(view.execution_id) is not None
            return {}

        monkeypatch.setattr(Bell, "begin", begin)
        model.answers = ["I must wait."]
        model.decisions = [decision("wait", wait={"watch": "bell"})]
        execution = mission(agent, loop_prompt="Go.").dispatch()
        assert run_once(execution) is Outcome.LOST
        assert not execution.iterations.exists()
        assert violations(5) == []

    def test_a_watch_that_takes_its_workers_along_is_given_up(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"watch": "bell"})
        is_due(execution)
        for _ in range(5):
            assert claim(execution.pk) is not None
            Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))
        assert claim(execution.pk) is None
        assert run_until_parked(execution).failure_code == "crash_loop"
        assert violations(5) == []
