"""`agency inbox`: what waits for a person, and answers from the terminal."""

import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from agency.agent import ToolCall
from agency.agent.result import Asked
from agency.cli import inbox_answers
from agency.cli.project import local_user
from agency.human.asking import about_calls, about_cut_calls, about_input
from agency.models import ConfiguredAgent, Execution, Mission
from agency.models.clock import Now
from tests.integration.rows import an_ask, waiting_row

Agency = Callable[..., Any]
pytestmark = pytest.mark.django_db


@pytest.fixture
def clerk(db: None) -> ConfiguredAgent:
    return ConfiguredAgent.objects.create(owner=local_user(), name="Clerk", agent_key="clerk")


@pytest.fixture
def waiting(clerk: ConfiguredAgent) -> Execution:
    return waiting_row(clerk, an_ask("pay", "mail"))


def decisions(execution: Execution) -> list[Any]:
    rows = execution.human_requests.get().items.order_by("position")
    return list(rows.values_list("decision", flat=True))


def request_id(execution: Execution) -> str:
    return str(execution.human_requests.get().pk)


def test_an_empty_inbox_says_so(agency: Agency) -> None:
    called = agency("inbox")
    assert (called.code, called.out.strip()) == (0, "Nothing waits for you.")
    assert json.loads(agency("inbox", "--json").out) == []


def test_the_inbox_lists_what_is_wanted(agency: Agency, waiting: Execution) -> None:
    called = agency("inbox")
    assert request_id(waiting)[:8] in called.out
    assert "Clerk wants to call pay(amount=5) and mail(amount=5)." in called.out
    (listed,) = json.loads(agency("inbox", "--json").out)
    assert (listed["id"], listed["execution"]) == (request_id(waiting), str(waiting.pk))


def test_a_long_inbox_is_listed_in_part_and_says_how_many_more_there_are(
    agency: Agency, clerk: ConfiguredAgent
) -> None:
    rows = [waiting_row(clerk, an_ask("pay")) for _ in range(3)]
    called = agency("inbox", "--limit", "2")
    assert [request_id(row)[:8] in called.out for row in rows] == [False, True, True]
    assert "1 more waits; --limit N lists more than 2." in called.err
    called = agency("inbox", "--limit", "2", "--json")
    assert [row["id"] for row in json.loads(called.out)] == [request_id(row) for row in rows[:0:-1]]
    assert "1 more waits;" in called.err
    assert "more wait" not in agency("inbox", "--limit", "3").err


def test_a_request_is_shown_with_what_may_be_decided(agency: Agency, waiting: Execution) -> None:
    called = agency("inbox", "show", request_id(waiting)[:8])
    assert "pay  (c0)" in called.out
    assert '"amount": 5' in called.out
    assert "undecided: approve, reject" in called.out
    assert json.loads(agency("inbox", "show", request_id(waiting), "--json").out)["status"] == "open"


def test_one_decision_is_for_all_calls(agency: Agency, waiting: Execution) -> None:
    called = agency("inbox", "answer", request_id(waiting), "approve")
    assert called.code == 0, called.err
    assert "goes on" in called.out
    assert decisions(waiting) == ["approve", "approve"]
    assert "approve by agency" in agency("inbox", "show", request_id(waiting)).out
    waiting.refresh_from_db()
    assert waiting.status == "in_progress"


def test_calls_are_decided_one_by_one_with_edits_and_reasons(agency: Agency, waiting: Execution) -> None:
    edit = ("--call", "c0", "--arguments", '{"amount": 3}')
    first = agency("inbox", "answer", request_id(waiting), "approve", *edit)
    assert "1 more to decide" in first.out
    why = ("--call", "c1", "--reason", "not now")
    last = json.loads(agency("inbox", "answer", request_id(waiting), "reject", *why, "--json").out)
    assert last["status"] == "answered"
    assert [item["effective"] for item in last["items"]] == [{"amount": 3}, None]
    assert last["items"][1]["reason"] == "not now"


def test_a_second_answer_is_refused_and_says_where_the_first_is(agency: Agency, waiting: Execution) -> None:
    agency("inbox", "answer", request_id(waiting), "reject")
    called = agency("inbox", "answer", request_id(waiting), "approve")
    assert called.code == 1
    assert "came too late" in called.err
    assert f"agency inbox show {request_id(waiting)[:8]}" in called.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("approve", "--arguments", "nonsense"), "--arguments is no JSON"),
        (("approve", "--arguments", "[1]"), "--arguments must be a JSON object"),
        (("approve", "--arguments", '{"amount": "much"}'), "items[0].arguments.amount"),
        (("happened",), "items[0].decision: must be one of approve, reject"),
        (("approve", "--call", "c9"), "Its calls: c0, c1."),
        ((), "Say what to decide"),
    ],
)
def test_a_mistake_is_named(agency: Agency, waiting: Execution, arguments: Any, said: str) -> None:
    called = agency("inbox", "answer", request_id(waiting), *arguments)
    assert called.code == 2
    assert said in called.err
    assert decisions(waiting) == [None, None]


def test_an_answer_of_the_wrong_type_is_refused_and_asks_on(agency: Agency, clerk: ConfiguredAgent) -> None:
    row = waiting_row(clerk, about_calls([Asked(question(), {"type": "boolean"}, True)], "Clerk"))
    called = agency("inbox", "answer", request_id(row), "answer", "--answer", "perhaps")
    assert (called.code, "items[0].answer: 'perhaps' is not of type 'boolean'" in called.err) == (2, True)
    assert row.human_requests.get().status == "open"


def test_an_answer_after_the_expiry_is_refused(agency: Agency, waiting: Execution) -> None:
    waiting.human_requests.update(expires_at=Now(-1))
    called = agency("inbox", "answer", request_id(waiting), "approve")
    assert (called.code, "expired" in called.err) == (1, True)
    assert decisions(waiting) == [None, None]


def question() -> ToolCall:
    return ToolCall(tool_call_id="q", name="ask_human", arguments={"question": "Shall I?"})


@pytest.mark.parametrize(("typed", "stored"), [("42", "42"), ("red", "red")])
def test_an_answer_is_one_of_the_choices_as_it_is_typed(
    agency: Agency, clerk: ConfiguredAgent, typed: str, stored: str
) -> None:
    call = ToolCall(tool_call_id="q", name="ask_human", arguments={"question": "Which?"})
    execution = waiting_row(clerk, about_calls([Asked(call, {"enum": ["42", "red"]}, True)], "Clerk"))
    assert agency("inbox", "answer", request_id(execution), "answer", "--answer", typed).code == 0
    assert execution.human_requests.get().items.get().answer == stored


def test_on_a_terminal_each_call_is_asked_about(
    agency: Agency, waiting: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(inbox_answers, "sys", type("Console", (), {"stdin": Terminal()}))
    typed = 'approve\n{"amount": 4}\nmaybe\nreject\ntoo dear\n'
    called = agency("inbox", "answer", request_id(waiting), stdin=typed)
    assert called.code == 0, called.err
    assert decisions(waiting) == ["approve", "reject"]
    first, second = waiting.human_requests.get().items.order_by("position")
    assert (first.effective, second.reason) == ({"amount": 4}, "too dear")


def test_giving_up_one_call_says_that_the_execution_has_ended(agency: Agency, clerk: ConfiguredAgent) -> None:
    cut = [(f"1:1:1:{n}:pay:0a", ToolCall(tool_call_id=f"c{n}", name="pay", arguments={})) for n in (0, 1)]
    execution = waiting_row(clerk, about_cut_calls(cut))
    called = agency("inbox", "answer", request_id(execution), "give_up", "--call", "c0")
    assert f"answered, execution {str(execution.pk)[:8]} has failed." in called.out
    execution.refresh_from_db()
    assert execution.status == "failed"


def test_what_was_always_allowed_asks_again_on_demand(agency: Agency, waiting: Execution) -> None:
    said = " ".join(agency("inbox", "answer", request_id(waiting), "approve", "--always").err.split())
    back = f"agency inbox ask-again {str(waiting.pk)[:8]} pay takes that back."
    assert said.endswith(f"Later calls of pay in this execution ask nobody. {back}")
    assert agency("inbox", "ask-again", str(waiting.pk), "pay").out.strip() == "Calls of pay ask again."
    assert agency("inbox", "ask-again", str(waiting.pk), "pay").out.strip() == "Calls of pay ask anyway."


@pytest.mark.parametrize(
    ("kind", "choices", "typed", "kept"),
    [
        ("text", [], "5", "5"),
        ("choice", ["Bonn", "Ulm"], "Ulm", "Ulm"),
        ("confirmation", [], "yes", True),
        ("confirmation", [], "false", False),
    ],
)
def test_a_mission_gets_its_answer_and_more_iterations(
    agency: Agency, clerk: ConfiguredAgent, kind: str, choices: list[str], typed: str, kept: Any
) -> None:
    ask = about_input("Which shop?", kind, choices, needs_grant=True)
    mission = Mission.objects.create(
        owner=clerk.owner, agent=clerk, name="Bills", prompt="Pay.", loop_prompt="Go"
    )
    row = waiting_row(
        clerk, ask, execution_key=None, mission=mission, loop_status="blocked", iteration=3, max_iterations=3
    )
    refused = agency("inbox", "answer", request_id(row), "answer", "--answer", typed)
    assert "grant: is missing" in refused.err
    called = agency("inbox", "answer", request_id(row), "answer", "--answer", typed, "--grant", "2")
    assert called.code == 0, called.err
    row.refresh_from_db()
    assert (row.max_iterations, row.human_requests.get().items.get().answer) == (5, kept)


def test_a_tool_that_was_allowed_for_a_mission_asks_again(agency: Agency, clerk: ConfiguredAgent) -> None:
    mission = Mission.objects.create(owner=clerk.owner, agent=clerk, name="Bills", prompt="Pay.")
    row = waiting_row(clerk, an_ask("pay"), execution_key=None, mission=mission)
    called = agency("inbox", "answer", request_id(row), "approve", "--always", "--always-for", "mission")
    assert called.code == 0, called.err
    mission.refresh_from_db()
    assert mission.always_allow == {"pay": True}
    back = f"agency mission ask-again {str(mission.pk)[:8]} pay takes that back."
    assert " ".join(called.err.split()) == f"Later calls of pay in the mission ask nobody. {back}"
    assert re.search(r"asks not for +pay", agency("mission", "show", "Bills").out)
    assert agency("mission", "ask-again", "Bills", "pay").out.strip() == "Calls of pay ask again."
    assert agency("mission", "ask-again", "Bills", "pay").out.strip() == "Calls of pay ask anyway."
    mission.refresh_from_db()
    assert mission.always_allow == {"pay": False}
    assert "asks not for" not in agency("mission", "show", "Bills").out
