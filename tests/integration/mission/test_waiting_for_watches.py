"""A mission waits for a watch: looked at again and again, until it is met, fails or its time is over."""

from datetime import datetime, timedelta

import pytest

from agency.enums import EventKind
from agency.execution.invariants import violations
from agency.execution.metadata import WAIT
from agency.mission import waiting
from agency.mission.watches import Look, registry
from agency.models import ConfiguredAgent
from agency.models.clock import database_now
from agency.runtime.body import Outcome
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, kinds, mission
from tests.integration.mission.waits import (
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


class TestWatch:
    def test_it_is_looked_at_at_its_interval_without_a_trace_in_the_log(
        self, agent: ConfiguredAgent, model: Model
    ):
        execution = waiting_for(agent, model, {"watch": "bell"})
        assert ready_in(execution) == pytest.approx(45, abs=10)
        assert execution.metadata[WAIT]["memory"] == {"rung": 3}
        before = kinds(execution)
        Bell.says = [Look(False), Look(False, memory={"rung": 4}), Look(False)]
        for _ in range(3):
            is_due(execution)
            assert run_once(execution) is Outcome.WAITING
        execution.refresh_from_db()
        assert [memory for _, memory in Bell.saw] == [{"rung": 3}, {"rung": 3}, {"rung": 4}]
        view = Bell.saw[0][0]
        assert (view.execution_id, view.iteration, view.what_for) == (str(execution.pk), 1, "the new stock")
        assert (execution.loop_status, execution.claim_id, execution.claim_count) == ("waiting", None, 0)
        assert (execution.iteration, execution.iterations.count()) == (1, 1)
        assert ready_in(execution) == pytest.approx(45, abs=10)
        assert kinds(execution) == before
        assert violations(5) == []

    def test_what_it_found_opens_the_next_iteration(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"watch": "bell"})
        Bell.says = [Look(True, payload={"tone": "high"})]
        is_due(execution)
        assert run_once(execution) is Outcome.FINISHED
        said_by, message = told(execution)
        assert (
            said_by == "watch" and 'the watch "bell" has found' in message and '{"tone": "high"}' in message
        )
        assert resumed(execution)["by"] == "watch"
        assert violations(5) == []

    def test_one_that_fails_is_tried_again_and_given_up_after_five_times(
        self, agent: ConfiguredAgent, model: Model
    ):
        execution = waiting_for(agent, model, {"watch": "bell"})
        Bell.says = [OSError("the key is sk-0123456789abcdefghij")] * 5
        for _ in range(4):
            is_due(execution)
            assert run_once(execution) is Outcome.WAITING
        execution.refresh_from_db()
        assert execution.metadata[WAIT]["failures"] == 4
        assert ready_in(execution) == pytest.approx(45, abs=10)
        failing = execution.events.filter(kind=EventKind.LOOP_WAITING.value).order_by("seq")
        assert [event.data.get("error") for event in failing] == [None, "OSError"]
        is_due(execution)
        assert run_once(execution) is Outcome.FINISHED
        said_by, message = told(execution)
        assert said_by == "watch" and "failed 5 times in a row, last with OSError" in message
        assert "sk-" not in message
        assert (resumed(execution)["by"], resumed(execution)["failures"]) == ("watch_failed", 5)
        assert violations(5) == []

    def test_a_look_that_works_begins_the_count_anew(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"watch": "bell"})
        Bell.says = [*[OSError()] * 4, Look(False), *[OSError()] * 4]
        for _ in range(9):
            is_due(execution)
            assert run_once(execution) is Outcome.WAITING

    def test_its_timeout_is_told_and_it_is_not_looked_at_again(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"watch": "bell"})
        kept = execution.metadata[WAIT]
        lasts = datetime.fromisoformat(kept["until"]) - datetime.fromisoformat(kept["since"])
        assert lasts == timedelta(seconds=7_200)
        passes(execution)
        assert run_once(execution) is Outcome.FINISHED
        assert 'the watch "bell" has ended without it' in told(execution)[1]
        assert Bell.saw == []

    def test_the_last_look_is_not_later_than_the_timeout(
        self, agent: ConfiguredAgent, model: Model, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(Bell, "TIMEOUT", 20)
        assert ready_in(waiting_for(agent, model, {"watch": "bell"})) == pytest.approx(20, abs=5)

    def test_one_that_another_release_has_is_held_for_it(self, agent: ConfiguredAgent, model: Model):
        execution = waiting_for(agent, model, {"watch": "bell"})
        is_due(execution)
        with registry.isolated():
            registry.autodiscover()
            assert run_once(execution) is Outcome.HELD
        execution.refresh_from_db()
        assert "no watch is registered as 'bell'" in execution.metadata["held"]["reason"]
        assert waiting.run_now(execution, agent.owner).refused is None
        assert run_until_parked(execution).loop_status == "completed"
        assert violations(5) == []

    def test_one_that_cannot_begin_is_asked_again_at_the_first_look(
        self, agent: ConfiguredAgent, model: Model, monkeypatch: pytest.MonkeyPatch
    ):
        with monkeypatch.context() as patch:
            patch.delattr(Bell, "begin")
            patch.setattr(Bell, "begin", lambda self, view: 1 / 0, raising=False)
            execution = waiting_for(agent, model, {"watch": "bell"})
        assert (execution.loop_status, execution.metadata[WAIT]["memory"]) == ("waiting", None)
        is_due(execution)
        assert run_once(execution) is Outcome.WAITING
        execution.refresh_from_db()
        assert execution.metadata[WAIT]["memory"] == {"rung": 3}

    def test_an_invented_watch_is_sent_back_to_the_supervisor(self, agent: ConfiguredAgent, model: Model):
        model.answers = ["I must wait."]
        model.decisions = [decision("wait", wait={"watch": name}) for name in ("oven", "bell")]
        execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
        assert execution.metadata[WAIT]["name"] == "bell"
        assert "'oven' is no watch; there are: bell" in model.judged[1].contents[-1].content

    def test_the_supervisor_is_told_which_there_are_and_what_time_it_is(
        self, agent: ConfiguredAgent, model: Model
    ):
        days = [f"{database_now():%A, %Y-%m-%d}"]
        waiting_for(agent, model, {"watch": "bell"})
        days.append(f"{database_now():%A, %Y-%m-%d}")
        told = model.judged[0].contents[0].content
        assert "- bell: The bell has rung." in told
        assert any(day in told for day in days)
