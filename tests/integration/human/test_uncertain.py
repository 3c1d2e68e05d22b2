"""An unsafe call that a crash cut: a person says what became of it."""

from collections import Counter
from collections.abc import Callable

import pytest

from agency.agent import Effect, Event, ExecutionContext, Message, ToolCall
from agency.agent.text import fingerprint
from agency.execution.invariants import violations
from agency.execution.scratchpad import ToolScratchpad
from agency.models import Execution, Step
from agency.models.clock import Now
from agency.runtime import sweep
from agency.runtime.claim import claim
from agency.runtime.journal import DbJournal
from agency.testing import run_until_parked
from tests.integration.human.conftest import answer, open_request, results
from tests.integration.runtime.conftest import Submit

Bill = Callable[[], Counter[str]]
pytestmark = pytest.mark.django_db


def call_key(place: int, amount: int) -> str:
    return f"1:0:{place}:pay:{fingerprint({'amount': amount})}"


@pytest.fixture
def cut(submit: Submit) -> Callable[..., Execution]:
    """`cut(task, *amounts)`: an execution whose calls of `pay` were announced, when their process died."""

    def create(task: str, *amounts: int) -> Execution:
        execution = submit(task)
        got = claim(execution.pk)
        assert got is not None
        journal = DbJournal(got, ToolScratchpad(), ExecutionContext(execution_id=str(execution.pk)), 0)
        said = [Message(role="user", content=task)]
        calls = [
            ToolCall(tool_call_id=f"c1-{n}", name="pay", arguments={"amount": amount})
            for n, amount in enumerate(amounts)
        ]
        for key, author, content in (("1:user", "user", said), ("1:0:model", "Fault clerk", calls)):
            event = Event(execution_id=str(execution.pk), author=author, content=list(content))
            journal.record(key, None, [event])
        for n, amount in enumerate(amounts):
            journal.intend(call_key(n, amount), Effect.UNSAFE, f"key-{n}")
        Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))
        sweep.recover()
        return run_until_parked(execution)

    return create


def test_a_cut_call_parks_the_execution_instead_of_being_made_again(cut: Callable[..., Execution]) -> None:
    execution = cut('pay 5; {"a": "done"}', 5)
    request = open_request(execution)
    assert (execution.status, request.kind) == ("interrupted", "uncertain_effect")
    assert request.message == "pay(amount=5) was cut by a crash and may have taken effect."
    item = request.items.get()
    assert (item.call_id, item.tool, item.proposed) == ("c1-0", "pay", {"amount": 5})
    assert violations(cap=5) == []


def test_what_a_person_says_of_the_call_is_its_result(cut: Callable[..., Execution], bill: Bill) -> None:
    execution = cut('pay 5; {"a": "done"}', 5)
    assert answer(execution, "happened", result={"receipt": 7}).refused is None
    done = run_until_parked(execution)
    assert (done.status, results(done)) == ("finished", [("success", {"receipt": 7})])
    assert bill()["pay 5"] == 0
    assert Step.objects.get(execution=execution, key__contains=":pay:").status == "done"


def test_without_a_result_the_model_hears_that_it_happened(cut: Callable[..., Execution]) -> None:
    execution = cut('pay 5; {"a": "done"}', 5)
    answer(execution, "happened")
    (said,) = results(run_until_parked(execution))
    assert said == ("success", "It took effect; a person confirmed that after a crash.")


def test_a_call_that_is_to_run_again_is_announced_by_the_new_claim(
    cut: Callable[..., Execution], bill: Bill, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = cut('pay 5; {"a": "done"}', 5)
    assert answer(execution, "run_again").refused is None
    assert not Step.objects.filter(execution=execution, key__contains=":pay:").exists()

    # It is cut again: the next claimer finds the new intent, and asks once more.
    got = claim(execution.pk)
    assert got is not None
    journal = DbJournal(got, ToolScratchpad(), ExecutionContext(execution_id=str(execution.pk)), 0)
    journal.intend(call_key(0, 5), Effect.UNSAFE, "key-0")
    Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))
    sweep.recover()
    again = run_until_parked(execution)
    assert again.status == "interrupted"
    assert list(again.human_requests.order_by("created_at").values_list("status", flat=True)) == [
        "answered",
        "open",
    ]
    assert bill()["pay 5"] == 0


def test_an_execution_that_is_given_up_ends_with_a_plain_summary(cut: Callable[..., Execution]) -> None:
    execution = cut('pay 5; {"a": "done"}', 5)
    assert answer(execution, "give_up").refused is None
    execution.refresh_from_db()
    assert (execution.status, execution.failure_code) == ("failed", "runtime_error")
    assert execution.failure_summary == (
        "A person gave the execution up. pay(amount=5) was cut by a crash and may have taken effect."
    )
    assert execution.human_requests.get().status == "answered"
    assert [row.kind for row in execution.events.order_by("seq")][-2:] == [
        "human_request_answered",
        "execution_failed",
    ]
    assert violations(cap=5) == []


def test_calls_that_were_cut_together_are_one_request(cut: Callable[..., Execution], bill: Bill) -> None:
    execution = cut('pay 5 & pay 7; {"a": "done"}', 5, 7)
    assert [item.proposed for item in open_request(execution).items.all()] == [{"amount": 5}, {"amount": 7}]
    answer(execution, "happened", 0, result="paid 5")
    answer(execution, "happened", 1, result="paid 7")
    done = run_until_parked(execution)
    assert (done.status, results(done)) == ("finished", [("success", "paid 5"), ("success", "paid 7")])


def test_giving_one_of_them_up_ends_the_execution_at_once(cut: Callable[..., Execution]) -> None:
    execution = cut('pay 5 & pay 7; {"a": "done"}', 5, 7)
    answer(execution, "give_up", 1)
    execution.refresh_from_db()
    assert execution.status == "failed"
    assert violations(cap=5) == []
