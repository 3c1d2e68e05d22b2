"""What may be sent to a mission, and what is made of it."""

from typing import Any

import pytest

from agency.errors import InvalidInput
from agency.execution.invariants import violations
from agency.mission import signals
from agency.models import ConfiguredAgent, Execution
from agency.runtime.body import run_claimed
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, go_on, mission
from tests.integration.rows import execution_row

pytestmark = pytest.mark.django_db


@pytest.fixture
def loop(agent: ConfiguredAgent) -> Execution:
    return mission(agent, loop_prompt="Go.").dispatch()


def test_a_signal_is_stored_and_on_record(loop: Execution, agent: ConfiguredAgent) -> None:
    sent = signals.send(loop, " deployed ", {"version": 7}, agent.owner)
    assert sent.signal is not None and sent.ended_wait is False
    kept = loop.signals.get()
    assert (kept.name, kept.payload, kept.sent_by) == ("deployed", {"version": 7}, agent.owner)
    event = loop.events.get()
    assert event.kind == "mission_signal_received"
    assert event.data == {"signal": str(kept.pk), "name": "deployed", "who": agent.owner.get_username()}
    assert violations(5) == []


def test_secrets_in_a_payload_are_masked_before_anything_is_stored(loop: Execution) -> None:
    signals.send(loop, "login", {"password": "hunter22", "note": "Bearer abcdefgh12345678"})
    assert loop.signals.get().payload == {"password": "[redacted]", "note": "Bearer [redacted]"}


def test_text_that_no_database_takes_is_cleaned(loop: Execution) -> None:
    signals.send(loop, "odd", ["a\x00b", "\ud800", float("nan")])
    assert loop.signals.get().payload == ["ab", "\ufffd", "NaN"]


@pytest.mark.parametrize("name", ["", "  ", "a/b", "a\nb", "x" * 101, None, 7])
def test_a_name_that_cannot_be_is_refused(loop: Execution, name: Any) -> None:
    with pytest.raises(InvalidInput, match="name: must be a printable text of 1 to 100 characters"):
        signals.send(loop, name)
    assert not loop.signals.exists()


def _deep() -> Any:
    value: Any = 1
    for _ in range(200):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ("x" * 65_600, "payload: has 65,602 bytes as JSON; at most 65,536 are taken"),
        ({1, 2}, "payload: must be JSON"),
        (_deep(), "payload: is nested too deeply"),
    ],
)
def test_a_payload_that_cannot_be_is_refused(loop: Execution, payload: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        signals.send(loop, "big", payload)
    assert refused.value.errors[0]["path"] == "payload"
    assert not loop.signals.exists()


def test_a_finished_run_refuses(loop: Execution, model: Model) -> None:
    model.answers, model.decisions = ["Done."], [decision("complete", evidence="Done.")]
    run_until_parked(loop)
    sent = signals.send(loop, "late")
    assert (sent.signal, sent.refused) == (None, "The execution is finished; it takes no more signals.")
    assert not loop.signals.exists()


def test_what_can_never_wait_refuses(agent: ConfiguredAgent) -> None:
    assert "no loop" in str(signals.send(mission(agent).dispatch(), "x").refused)
    assert "no loop" in str(signals.send(execution_row(agent), "x").refused)


def test_a_flood_is_stopped(loop: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "MOST_UNHEARD", 3)
    sent = [signals.send(loop, "drop", n) for n in range(4)]
    assert [one.refused is None for one in sent] == [True, True, True, False]
    assert "has 3 signals that it has not heard yet" in str(sent[-1].refused)


def test_one_to_a_mission_that_is_blocked_is_kept_for_a_later_wait(loop: Execution, model: Model) -> None:
    model.answers = ["What now?"]
    model.decisions = [decision("blocked", required_input={"question": "What now?"})]
    run_until_parked(loop)
    sent = signals.send(loop, "news", 1)
    assert sent.signal is not None and sent.signal.consumed_iteration is None
    loop.refresh_from_db()
    assert loop.loop_status == "blocked"
    assert violations(5) == []


def test_a_signal_in_the_pause_between_two_iterations_does_not_end_it(
    agent: ConfiguredAgent, model: Model
) -> None:
    model.answers, model.decisions = ["A."], [go_on("Sort the orders of B.")]
    execution = mission(agent, loop_prompt="Go.", loop_delay_seconds=600).dispatch()
    made = claim(execution.pk)
    assert made is not None
    run_claimed(made)
    assert signals.send(execution, "news").ended_wait is False
    assert claim(execution.pk) is None
