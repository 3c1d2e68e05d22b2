"""What a person allows for all executions of a mission asks nobody, until it is taken back."""

import pytest

from agency.enums import AlwaysFor
from agency.errors import InvalidInput
from agency.execution import answering
from agency.execution.invariants import violations
from agency.mission import allowing
from agency.models import ConfiguredAgent, Execution, Mission
from agency.testing import run_until_parked
from tests.integration.mission.people import (
    Model,
    answer,
    cashier,
    go_on,
    loop,
    made,
    mission,
    model,
    open_request,
    paying,
    results,
)
from tests.integration.rows import an_ask, waiting_row

__all__ = ["cashier", "model"]
pytestmark = pytest.mark.django_db
FOR_MISSION = {"always": True, "always_for": AlwaysFor.MISSION}


@pytest.fixture
def bills(cashier: ConfiguredAgent) -> Mission:
    return mission(cashier)


@pytest.fixture
def allowed(bills: Mission, model: Model) -> Execution:
    """An execution in which a person has allowed `pay` for the whole mission; it has not gone on yet."""
    model.answers = [paying(1), paying(2), "Paid."]
    execution = run_until_parked(bills.dispatch())
    assert answer(execution, "approve", **FOR_MISSION).refused is None
    return execution


def run(bills: Mission, model: Model, amount: int) -> Execution:
    model.answers = [paying(amount), "Paid."]
    return run_until_parked(bills.dispatch())


def test_this_execution_and_later_ones_ask_no_more(bills: Mission, allowed: Execution, model: Model) -> None:
    assert run_until_parked(allowed).status == "finished"
    assert run(bills, model, 3).status == "finished"
    assert made == ["1 to Ada", "2 to Ada", "3 to Ada"]
    assert allowing.allowed(bills) == ["pay"]
    assert violations(5) == []


def test_it_holds_for_one_mission_only(allowed: Execution, cashier: ConfiguredAgent, model: Model) -> None:
    assert run(mission(cashier, name="Other bills"), model, 3).status == "interrupted"


def test_taken_back_it_asks_again_in_every_execution_at_once(
    bills: Mission, allowed: Execution, model: Model
) -> None:
    assert allowing.revoke(bills, "pay") is True
    assert allowing.revoke(bills, "pay") is False
    assert allowing.allowed(bills) == []
    execution = run_until_parked(allowed)
    assert execution.status == "interrupted"
    assert results(execution) == [("success", "paid 1 to Ada")]
    assert open_request(execution).items.get().proposed == {"amount": 2}
    assert run(bills, model, 3).status == "interrupted"
    assert violations(5) == []


def test_it_can_be_taken_back_for_one_execution(bills: Mission, allowed: Execution, model: Model) -> None:
    assert answering.allow_no_longer(allowed, "pay") is True
    assert answering.allow_no_longer(allowed, "pay") is False
    execution = run_until_parked(allowed)
    assert execution.status == "interrupted"
    assert run(bills, model, 3).status == "finished"
    model.answers = ["Paid."]
    answer(execution, "approve", **FOR_MISSION)
    assert answering.is_allowed(execution.pk, "pay")


def test_what_was_allowed_for_one_execution_stays_there(bills: Mission, model: Model) -> None:
    model.answers = [paying(1), paying(2), "Paid."]
    execution = run_until_parked(bills.dispatch())
    answer(execution, "approve", always=True)
    assert allowing.revoke(bills, "pay") is False
    assert run_until_parked(execution).status == "finished"
    assert run(bills, model, 3).status == "interrupted"


def test_it_holds_for_the_iterations_of_a_loop(cashier: ConfiguredAgent, model: Model) -> None:
    model.answers = [paying(1), "A.", paying(2), "B."]
    model.decisions = [go_on("Pay 2."), go_on("Pay 3.")]
    execution = run_until_parked(loop(cashier, max_iterations=2).dispatch())
    answer(execution, "approve", **FOR_MISSION)
    assert run_until_parked(execution).loop_status == "limit_reached"
    assert made == ["1 to Ada", "2 to Ada"]


def test_saving_an_older_copy_of_the_mission_does_not_bring_it_back(
    bills: Mission, allowed: Execution
) -> None:
    older = Mission.objects.get(pk=bills.pk)
    assert older.always_allow == {"pay": True}
    allowing.revoke(bills, "pay")
    older.name = "Invoices"
    older.save()
    assert allowing.allowed(bills) == []
    assert Mission.objects.get(pk=bills.pk).name == "Invoices"


def test_where_it_does_not_fit_it_is_refused(bills: Mission, cashier: ConfiguredAgent, model: Model) -> None:
    model.answers = [paying(1)]
    execution = run_until_parked(bills.dispatch())
    with pytest.raises(InvalidInput, match=r"items\[0\]\.always_for: goes with `always`"):
        answer(execution, "approve", always_for=AlwaysFor.MISSION)
    of_definition = waiting_row(cashier, an_ask("pay"))
    with pytest.raises(InvalidInput, match=r"items\[0\]\.always_for: is for executions of a mission only"):
        answer(of_definition, "approve", **FOR_MISSION)
    assert allowing.allowed(bills) == []
