"""An execution parks with a request, people answer its items, and the run goes on where it was."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agency.agent import LlmRequest, LlmResponse, ToolCall
from agency.agent.result import Asked
from agency.enums import HumanDecision
from agency.errors import InvalidInput
from agency.execution import answering, service
from agency.execution.invariants import violations
from agency.human import decisions
from agency.human.answers import ItemAnswer
from agency.human.asking import about_calls, about_cut_calls
from agency.human.schemas import storable_schema
from agency.models import ConfiguredAgent, Execution, clock
from agency.models.clock import Now
from agency.runtime.claim import claim
from agency.runtime.wiring import use_client
from agency.testing import run_until_parked
from tests.faults.app.models import FollowsTheTask
from tests.integration.human.conftest import Parked, answer, open_request, results, say
from tests.integration.rows import waiting_row
from tests.integration.runtime.conftest import Submit

Bill = Callable[[], Counter[str]]
pytestmark = pytest.mark.django_db


def test_a_call_that_needs_a_person_parks_the_execution_with_a_request(parked: Parked, bill: Bill) -> None:
    execution = parked()
    request = open_request(execution)

    assert (execution.claim_id, execution.next_run_at, execution.claim_count) == (None, None, 0)
    assert (request.kind, request.iteration) == ("confirm_tool", 1)
    assert request.message == "Fault clerk wants to call spend(amount=5)."
    # The clock is read once for each of the two.
    assert abs(request.expires_at - request.created_at - timedelta(days=7)) < timedelta(milliseconds=50)
    item = request.items.get()
    assert (item.call_id, item.tool, item.proposed, item.decision) == ("c1-0", "spend", {"amount": 5}, None)
    assert item.answer_schema["properties"]["amount"]["type"] == "integer"
    assert bill()["spend 5"] == 0
    assert violations(cap=5) == []


def test_after_an_approval_the_call_is_made_and_nothing_is_paid_twice(parked: Parked, bill: Bill) -> None:
    execution = parked('jot x; spend 5; {"a": "done"}')
    assert answer(execution, "approve").refused is None

    execution.refresh_from_db()
    assert execution.status == "in_progress"
    assert execution.next_run_at is not None
    done = run_until_parked(execution)
    assert (done.status, done.output) == ("finished", {"a": "done"})
    assert results(done) == [("success", "noted x"), ("success", "spent 5")]
    assert set(bill().values()) == {1}
    assert violations(cap=5) == []


def test_the_answer_is_kept_with_who_gave_it(parked: Parked, django_user_model: Any) -> None:
    execution, boss = parked(), django_user_model.objects.create_user("boss")
    answer(execution, "approve", by=boss, arguments={"amount": 3})

    request = execution.human_requests.get()
    item = request.items.get()
    assert (request.status, request.closed_at is not None) == ("answered", True)
    assert (item.proposed, item.effective, item.decision) == ({"amount": 5}, {"amount": 3}, "approve")
    assert (item.decided_by, item.decided_at is not None) == (boss, True)
    said = execution.events.get(kind="human_request_answered").data
    assert (said["decisions"], said["by"], said["undecided"]) == ({"c1-0": "approve"}, "boss", 0)


def test_edited_arguments_are_the_ones_that_are_used(parked: Parked, bill: Bill) -> None:
    execution = parked()
    answer(execution, "approve", arguments={"amount": 3})
    assert results(run_until_parked(execution)) == [("success", "spent 3")]
    assert (bill()["spend 5"], bill()["spend 3"]) == (0, 1)


def test_the_reason_of_a_rejection_reaches_the_model(parked: Parked, bill: Bill) -> None:
    execution = parked()
    answer(execution, "reject", reason="too dear")
    done = run_until_parked(execution)
    assert done.status == "finished"
    assert results(done) == [("error", "A person rejected this call: too dear")]
    assert bill()["spend 5"] == 0


def test_a_question_gets_its_answer(parked: Parked) -> None:
    execution = parked('ask Which colour? / red,blue; {"a": "done"}')
    request = open_request(execution)
    assert (request.kind, request.message) == ("question", "Which colour?")
    with pytest.raises(InvalidInput, match=r"items\[0\]\.answer: 'green' is not one of"):
        answer(execution, "answer", answer="green")
    assert answer(execution, "answer", answer="blue").refused is None
    assert results(run_until_parked(execution)) == [("success", "blue")]


def test_several_calls_are_one_request_that_is_answered_in_parts(parked: Parked, bill: Bill) -> None:
    execution = parked('spend 1 & ask Why? & spend 2; {"a": "done"}')
    request = open_request(execution)
    assert [item.kind for item in request.items.all()] == ["confirm_tool", "question", "confirm_tool"]

    for place, decision, more in ((2, "reject", {}), (0, "approve", {})):
        assert answer(execution, decision, place, **more).refused is None
        execution.refresh_from_db()
        assert (execution.status, open_request(execution).pk) == ("interrupted", request.pk)
    assert execution.events.last().data["undecided"] == 1
    assert decisions.decisions_for(execution.pk, 1) == []

    answer(execution, "answer", 1, answer="because")
    done = run_until_parked(execution)
    assert done.status == "finished"
    assert results(done) == [
        ("success", "spent 1"),
        ("success", "because"),
        ("error", "A person rejected this call."),
    ]
    assert bill()["spend 1"] == 1


def test_a_run_can_ask_again_in_the_same_turn_and_in_the_next_attempt(parked: Parked, bill: Bill) -> None:
    execution = parked('spend 1; spend 2; {"a": 1} | spend 3; {"b": "done"}')
    for expected in ("spend(amount=1)", "spend(amount=2)", "spend(amount=3)"):
        assert expected in open_request(execution).message
        answer(execution, "approve")
        execution = run_until_parked(execution)
    assert (execution.status, execution.iteration) == ("finished", 2)
    assert [request.iteration for request in execution.human_requests.order_by("created_at")] == [1, 1, 2]
    assert set(bill().values()) == {1}
    assert violations(cap=5) == []


class TestRefused:
    """Nothing is written, and the answer says what is on record."""

    def test_a_second_answer_gets_the_first(self, parked: Parked, django_user_model: Any) -> None:
        execution = parked()
        request = open_request(execution)
        mine = say(request, 0, "reject", reason="no")
        answering.answer(request.pk, [mine], execution.owner)
        for again, by in ((mine, execution.owner), (say(request, 0, "approve"), django_user_model("bob"))):
            late = answering.answer(request.pk, [again], by)
            assert late.refused == "The request is answered; this answer came too late."
            assert late.request.items.get().reason == "no"
        assert execution.events.filter(kind="human_request_answered").count() == 1

    def test_an_answer_to_a_call_that_was_decided(self, parked: Parked) -> None:
        execution = parked('spend 1 & spend 2; {"a": "done"}')
        answer(execution, "approve")
        late = answer(execution, "reject")
        assert late.refused == "The call c1-0 was decided before: approve."
        assert late.request.status == "open"

    def test_an_answer_to_another_call_than_was_shown(self, parked: Parked) -> None:
        execution = parked()
        request = open_request(execution)
        digest = request.items.get().digest[::-1]
        wrong = answering.answer(
            request.pk, [ItemAnswer("c1-0", digest, HumanDecision.APPROVE)], execution.owner
        )
        assert "digest" in (wrong.refused or "")
        assert request.items.get().decision is None

    def test_part_of_an_answer_never_counts_when_the_rest_is_refused(self, parked: Parked) -> None:
        execution = parked('spend 1 & spend 2; {"a": "done"}')
        request = open_request(execution)
        answer(execution, "approve", 1)
        both = [say(request, 0, "approve"), say(request, 1, "reject")]
        assert answering.answer(request.pk, both, execution.owner).refused is not None
        assert request.items.get(position=0).decision is None

    def test_an_answer_after_the_expiry_by_the_databases_clock(
        self, parked: Parked, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        execution = parked()
        monkeypatch.setattr(clock, "offset_seconds", 7 * 86_400.0 + 60)
        late = answer(execution, "approve")
        assert late.refused == "The request has expired; this answer came too late."
        assert late.request.items.get().decision is None

    def test_an_answer_after_a_cancel(self, parked: Parked) -> None:
        execution = parked()
        request = open_request(execution)
        given = say(request, 0, "approve")
        assert service.request_cancel(execution) == "cancelled"
        late = answering.answer(request.pk, [given], execution.owner)
        assert (late.refused, late.request.status) == (
            "The request is cancelled; this answer came too late.",
            "cancelled",
        )
        assert violations(cap=5) == []


@pytest.mark.parametrize(
    ("decision", "more", "path"),
    [
        ("answer", {"answer": 1}, "items[0].decision"),
        ("happened", {}, "items[0].decision"),
        ("approve", {"arguments": {"amount": "much"}}, "items[0].arguments.amount"),
        ("approve", {"arguments": {}}, "items[0].arguments"),
        ("approve", {"answer": "yes"}, "items[0].answer"),
        ("approve", {"result": "yes"}, "items[0].result"),
        ("reject", {"arguments": {"amount": 3}}, "items[0].arguments"),
        ("reject", {"always": True}, "items[0].always"),
        ("reject", {"reason": "x" * 3000}, "items[0].reason"),
    ],
)
def test_what_does_not_fit_is_named_and_changes_nothing(
    parked: Parked, decision: str, more: dict[str, Any], path: str
) -> None:
    execution = parked()
    with pytest.raises(InvalidInput) as raised:
        answer(execution, decision, **more)
    assert [error["path"] for error in raised.value.errors] == [path]
    assert open_request(execution).items.get().decision is None


def test_an_answer_about_nothing_twice_or_an_unknown_call_is_named(parked: Parked) -> None:
    execution = parked()
    request = open_request(execution)
    one = say(request, 0, "approve")
    unknown = ItemAnswer("c9", one.digest, HumanDecision.APPROVE)
    for given, path in (([], "items"), ([one, one], "items[1].call_id"), ([unknown], "items[0].call_id")):
        with pytest.raises(InvalidInput) as raised:
            answering.answer(request.pk, given, execution.owner)
        assert [error["path"] for error in raised.value.errors] == [path]


def test_the_deadline_stands_still_while_a_person_is_asked(
    parked: Parked, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = parked()
    before = execution.deadline_at
    monkeypatch.setattr(clock, "offset_seconds", 86_400.0)
    answer(execution, "approve")
    execution.refresh_from_db()
    assert timedelta(0) <= execution.deadline_at - before - timedelta(days=1) < timedelta(minutes=1)
    assert run_until_parked(execution).status == "finished"


def test_a_cancel_that_comes_while_the_run_parks_leaves_no_request(submit: Submit) -> None:
    execution = submit('spend 5; {"a": "done"}')
    Execution.objects.filter(pk=execution.pk).update(cancel_requested_at=Now())
    assert claim(execution.pk) is None
    assert run_until_parked(execution).status == "cancelled"
    assert execution.human_requests.count() == 0


def test_a_secret_in_a_call_is_neither_shown_nor_stored(parked: Parked) -> None:
    execution = parked('ask Is password=hunter2hunter2 right?; {"a": "done"}')
    request = open_request(execution)
    assert request.message == "Is password=[redacted] right?"
    assert "hunter2" not in str(request.items.get().proposed)
    answer(execution, "answer", answer="no, it is password=hunter3hunter3")
    assert results(run_until_parked(execution)) == [("success", "no, it is password=[redacted]")]


@pytest.mark.parametrize(
    "arguments",
    [
        {"token": "swordfish"},
        {"to": {"credentials": ["swordfish"]}},
        {"note": "x" * 60 + " the key is sk-swordfish0123456789abcdef"},
    ],
)
def test_the_sentence_about_a_call_names_no_secret_of_its_arguments(arguments: dict[str, Any]) -> None:
    tool_call = ToolCall(tool_call_id="c", name="login", arguments=arguments)
    for ask in (
        about_calls([Asked(tool_call, {})], "Clerk"),
        about_cut_calls([("1:1:1:0:login:0a", tool_call)]),
    ):
        assert "login(" in ask.message
        assert "swordfish" not in ask.message


def test_a_secret_at_the_end_of_a_long_question_is_masked_before_it_is_cut() -> None:
    question = {"question": "x" * 480 + " sk-swordfish0123456789abcdef"}
    call = ToolCall(tool_call_id="q", name="ask_human", arguments=question)
    assert "swordfish" not in about_calls([Asked(call, {}, True)], "Clerk").message


def test_a_sentence_shows_no_characters_that_would_steer_a_terminal() -> None:
    call = ToolCall(tool_call_id="q", name="ask_human", arguments={"question": "Pay\n\x1b[2K\x9b1A\u202e5?"})
    assert about_calls([Asked(call, {}, True)], "Clerk").message == "Pay\n�[2K�1A�5?"


def test_a_call_whose_secret_was_not_kept_cannot_be_approved(parked: Parked) -> None:
    execution = parked()
    request = open_request(execution)
    request.items.update(proposed={"amount": 5, "api_key": "[redacted]"})
    with pytest.raises(InvalidInput, match="hold a secret"):
        answer(execution, "approve")
    assert answer(execution, "reject").refused is None


def test_a_schema_keeps_the_fields_that_are_named_like_secrets_and_loses_their_values() -> None:
    fields = {
        "amount": {"type": "integer"},
        "api_key": {"type": "string", "title": "Api Key", "default": "swordfish"},
        "link": {"anyOf": [{"type": "string"}], "description": "such as https://me:swordfish@example.org/"},
    }
    kept = storable_schema({"type": "object", "properties": fields, "required": ["api_key"]})
    assert "swordfish" not in str(kept)
    assert kept["properties"]["api_key"] == {"type": "string", "title": "Api Key", "default": "[redacted]"}
    assert (kept["properties"]["amount"], kept["required"]) == ({"type": "integer"}, ["api_key"])


def test_arguments_can_be_edited_where_one_of_them_is_named_like_a_secret(clerk: ConfiguredAgent) -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}, "api_key": {"type": "string"}}}
    call = ToolCall(tool_call_id="c", name="pay", arguments={"amount": 5, "api_key": ""})
    execution = waiting_row(clerk, about_calls([Asked(call, schema)], "Clerk"))
    with pytest.raises(InvalidInput, match=r"items\[0\]\.arguments\.amount"):
        answer(execution, "approve", arguments={"amount": "much", "api_key": ""})
    assert answer(execution, "approve", arguments={"amount": 3, "api_key": ""}).refused is None


def test_a_schema_that_cannot_be_read_here_refuses_no_edits(clerk: ConfiguredAgent) -> None:
    for n, broken in enumerate(
        ({"pattern": r"\p{L}+"}, {"type": "text"}, {"$ref": "https://schema.invalid/a"})
    ):
        call = ToolCall(tool_call_id=f"c{n}", name="pay", arguments={"to": "Ada"})
        schema = {"type": "object", "properties": {"to": broken}}
        execution = waiting_row(clerk, about_calls([Asked(call, schema)], "Clerk"))
        assert answer(execution, "approve", arguments={"to": "Bob"}).refused is None


class TestAlwaysAllowed:
    def test_later_calls_of_the_tool_ask_nobody_until_that_is_revoked(
        self, parked: Parked, bill: Bill
    ) -> None:
        execution = parked('spend 1; spend 2; {"a": 1} | spend 3; ask Now?; spend 4; {"b": "done"}')
        answer(execution, "approve", always=True)
        execution = run_until_parked(execution)
        assert open_request(execution).message == "Now?"
        assert [bill()[f"spend {n}"] for n in (1, 2, 3, 4)] == [1, 1, 1, 0]
        assert execution.metadata["always_allow"] == {"spend": True}

        assert answering.allow_no_longer(execution, "spend") is True
        assert answering.allow_no_longer(execution, "spend") is False
        answer(execution, "answer", answer="yes")
        execution = run_until_parked(execution)
        assert "spend(amount=4)" in open_request(execution).message
        answer(execution, "approve")
        assert run_until_parked(execution).status == "finished"

    def test_it_can_be_revoked_while_the_execution_runs(self, parked: Parked, bill: Bill) -> None:
        class Revoking(FollowsTheTask):
            """Somebody takes the allowance back while the model thinks about its second call."""

            def generate(self, request: LlmRequest) -> LlmResponse:
                response = super().generate(request)
                if any(call.arguments == {"amount": 3} for call in response.tool_calls):
                    assert answering.allow_no_longer(execution, "spend") is True
                return response

        execution = parked('spend 1; spend 2; spend 3; {"a": "done"}')
        answer(execution, "approve", always=True)
        with use_client(Revoking()):
            execution = run_until_parked(execution)
        assert (execution.status, bill()["spend 2"], bill()["spend 3"]) == ("interrupted", 1, 0)
        assert "spend(amount=3)" in open_request(execution).message

    def test_it_holds_for_one_execution_only(self, parked: Parked) -> None:
        first = parked()
        answer(first, "approve", always=True)
        assert run_until_parked(first).status == "finished"
        assert open_request(parked()).kind == "confirm_tool"
