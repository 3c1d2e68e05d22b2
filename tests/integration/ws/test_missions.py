"""The socket of a person's missions: what becomes of their executions, from the table or by the layer."""

from collections.abc import Callable
from typing import Any

import pytest

from agency.enums import EventKind
from agency.models import ApiToken, Event, Execution
from agency.runtime.broadcast import Broadcaster
from agency.ws import missions, socket
from agency.ws.missions import Told
from tests.integration.rows import execution_row, say
from tests.integration.ws.conftest import Headers, Open, Peer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def peer(opened: Open, token: Headers) -> Peer:
    made = opened("/ws/missions/", token)
    assert made.next() == {"type": "listening"}
    return made


def test_what_becomes_of_a_mission_is_told_without_what_agents_say(loop: Execution, peer: Peer) -> None:
    say(loop, EventKind.CONTENT)
    say(loop, EventKind.LOOP_WAITING, what_for="the invoice")
    told = peer.next()
    assert (told["type"], told["execution"], told["seq"]) == ("mission_loop_waiting", str(loop.pk), 2)
    assert (told["mission"], told["what_for"]) == (str(loop.mission_id), "the invoice")


def test_what_was_before_is_not_told(loop: Execution, opened: Open, token: Headers) -> None:
    say(loop, EventKind.LOOP_STARTED)
    peer = opened("/ws/missions/", token)
    assert peer.next() == {"type": "listening"}
    say(loop, EventKind.LOOP_BLOCKED)
    assert peer.next()["seq"] == 2


def test_an_execution_that_was_dispatched_later_is_told_from_its_start(loop: Execution, peer: Peer) -> None:
    later = execution_row(
        loop.agent, execution_key=None, mission=loop.mission, loop_status="running", max_iterations=5
    )
    say(later, EventKind.STARTED)
    say(later, EventKind.LOOP_STARTED)
    assert [peer.next()["type"] for _ in range(2)] == ["execution_started", "mission_loop_started"]


def test_definitions_and_other_peoples_missions_are_not_told(
    loop: Execution, peer: Peer, opened: Open, django_user_model: Any
) -> None:
    bob = ApiToken.issue(django_user_model.objects.create_superuser("bob"), "tests")[1]
    other = opened("/ws/missions/", {"Authorization": f"Bearer {bob}"})
    assert other.next() == {"type": "listening"}
    say(execution_row(loop.agent), EventKind.STARTED)
    say(loop, EventKind.LOOP_BLOCKED)
    assert peer.next()["type"] == "mission_loop_blocked"
    with pytest.raises(TimeoutError):
        other.next(within=0.3)


def test_with_a_layer_it_is_told_at_once(
    loop: Execution, layer: Broadcaster, opened: Open, token: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "LOOK_SECONDS", 3600.0)
    peer = opened("/ws/missions/", token)
    assert peer.next() == {"type": "listening"}
    for _ in range(3):
        say(loop, EventKind.ITERATION_STARTED)
        assert peer.next()["type"] == "mission_iteration_started"


def test_what_the_layer_lost_is_found_in_the_table(
    loop: Execution, layer: Broadcaster, monkeypatch: pytest.MonkeyPatch, opened: Open, token: Headers
) -> None:
    monkeypatch.setattr(socket, "LOOK_SECONDS", 0.2)
    layer.close()
    peer = opened("/ws/missions/", token)
    assert peer.next() == {"type": "listening"}
    say(loop, EventKind.LOOP_WAITING)
    assert peer.next()["type"] == "mission_loop_waiting"


class TestLooks:
    """A look at the table, where no notice said when to look."""

    @pytest.mark.parametrize("others", [0, 3])
    def test_one_that_finds_nothing_is_one_statement_however_many_are_open(
        self, loop: Execution, others: int, django_assert_num_queries: Callable[[int], Any]
    ) -> None:
        for _ in range(others):
            say(another(loop), EventKind.LOOP_WAITING)
        say(loop, EventKind.LOOP_WAITING)
        told = Told(loop.owner)
        with django_assert_num_queries(1):
            assert told.news(loop.owner, ()) == []

    def test_one_that_finds_something_reads_only_that(
        self, loop: Execution, django_assert_num_queries: Callable[[int], Any]
    ) -> None:
        told = Told(loop.owner)
        say(loop, EventKind.LOOP_WAITING)
        with django_assert_num_queries(3):
            assert types(told.news(loop.owner, ())) == ["mission_loop_waiting"]
        assert told.news(loop.owner, ()) == []

    def test_an_event_that_is_committed_after_a_later_one_is_found(self, loop: Execution) -> None:
        say(loop, EventKind.LOOP_STARTED)
        mine, told = Event.objects.get(), Told(loop.owner)
        later = mine.pk + 1_000
        Event(pk=later, execution=another(loop), seq=1, kind=EventKind.LOOP_STARTED).save(force_insert=True)
        assert types(told.news(loop.owner, ())) == ["mission_loop_started"]
        Event(pk=later - 1, execution=loop, seq=2, kind=EventKind.LOOP_WAITING).save(force_insert=True)
        assert types(told.news(loop.owner, ())) == ["mission_loop_waiting"]

    def test_one_that_is_committed_much_later_is_found_by_a_look_at_all(
        self, loop: Execution, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(missions, "OVERLAP", 0.0)
        say(loop, EventKind.LOOP_STARTED)
        mine, told = Event.objects.get(), Told(loop.owner)
        Event(pk=mine.pk - 1, execution=loop, seq=2, kind=EventKind.LOOP_WAITING).save(force_insert=True)
        assert told.news(loop.owner, ()) == []
        monkeypatch.setattr(missions, "WHOLE_SECONDS", 0.0)
        assert types(told.news(loop.owner, ())) == ["mission_loop_waiting"]


def another(loop: Execution) -> Execution:
    return execution_row(
        loop.agent, execution_key=None, mission=loop.mission, loop_status="running", max_iterations=5
    )


def types(notices: list[Any]) -> list[str]:
    return [notice["type"] for notice in notices]
