"""A decision to wait becomes what the row keeps; an invented watch is no valid decision."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from agency.agent import LlmRequest, LlmResponse, Message
from agency.mission import waits
from agency.mission.branches import BranchedLoopDecision
from agency.mission.loop import LoopDecision, Wait, evaluate_loop_decision
from agency.mission.placeholders import Counters
from agency.mission.prompt import Matter

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WAITING = {"reason": "r", "summary": "s", "status": "wait"}


def begun(**wait: Any) -> dict[str, Any]:
    return waits.begun(Wait.model_validate(wait), NOW, 60.0, None)


@pytest.mark.parametrize(
    ("wait", "kind", "name", "until"),
    [
        ({"seconds": 90}, "seconds", None, NOW + timedelta(seconds=90)),
        ({"until": "2026-03-01T13:00:00+01:00"}, "until", None, NOW + waits.SHORTEST),
        ({"until": "2026-03-01T13:30:00Z"}, "until", None, NOW + timedelta(minutes=90)),
        ({"until": "9999-01-01T00:00:00Z"}, "until", None, NOW + timedelta(days=366)),
        ({"signal": "go"}, "signal", "go", NOW + timedelta(seconds=60)),
        ({"watch": "build"}, "watch", "build", NOW + timedelta(seconds=60)),
    ],
)
def test_every_wait_has_an_end(wait: dict[str, Any], kind: str, name: str | None, until: datetime) -> None:
    kept = begun(**wait, what_for="news")
    assert (kept["kind"], kept["name"], kept["what_for"]) == (kind, name, "news")
    assert waits.until_of(kept) == until
    assert waits.since_of(kept) == NOW


def test_the_time_is_what_was_waited_for_or_a_timeout() -> None:
    assert waits.by_time(begun(seconds=5)).by == "time"
    assert waits.by_time(begun(signal="go")).by == "timeout"
    assert waits.by_time(begun(watch="build")).by == "timeout"


def test_what_events_say_of_a_wait_holds_no_memory() -> None:
    assert set(waits.told(begun(watch="build"))) == {"kind", "name", "what_for", "until"}


@pytest.mark.parametrize("form", [LoopDecision, BranchedLoopDecision])
def test_a_watch_that_is_not_there_is_refused_and_the_form_stays_the_same(form: type[LoopDecision]) -> None:
    knowing = waits.knowing(form, ["build", "mail"])
    assert knowing.model_json_schema() == form.model_json_schema()
    assert knowing.model_validate({**WAITING, "wait": {"watch": "mail"}}).wait == Wait(watch="mail")
    assert knowing.model_validate({**WAITING, "wait": {"signal": "anything"}}).wait == Wait(signal="anything")
    with pytest.raises(ValidationError, match="'oven' is no watch; there are: build, mail"):
        knowing.model_validate({**WAITING, "wait": {"watch": "oven"}})


def test_a_form_is_made_once_for_the_same_watches() -> None:
    made = waits.knowing(LoopDecision, ["build", "mail"])
    assert waits.knowing(LoopDecision, ["mail", "build"]) is made
    assert waits.knowing(LoopDecision, ["mail"]) is not made
    assert waits.knowing(BranchedLoopDecision, ["build", "mail"]) is not made


def test_without_watches_the_refusal_says_what_else_there_is() -> None:
    with pytest.raises(ValidationError, match="none: wait for seconds, until a time or for a signal"):
        waits.knowing(LoopDecision, []).model_validate({**WAITING, "wait": {"watch": "oven"}})


class Saying:
    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked: list[LlmRequest] = []

    def generate(self, request: LlmRequest) -> LlmResponse:
        self.asked.append(request)
        return LlmResponse([Message(role="assistant", content=self.texts.pop(0))])


def test_an_invented_watch_is_sent_back_once_with_the_names_there_are() -> None:
    wait = '{"reason": "r", "summary": "s", "status": "wait", "wait": {"watch": "%s"}}'
    supervisor = Saying(wait % "oven", wait % "build")
    matter = Matter("Do it", Counters(1, 3), "", "", "agent: done")
    evaluation = evaluate_loop_decision(supervisor, matter, waits.knowing(LoopDecision, ["build"]))
    assert evaluation.decision is not None and evaluation.decision.wait == Wait(watch="build")
    correction = supervisor.asked[1].contents[-1]
    assert isinstance(correction, Message) and "there are: build" in correction.content
