"""The socket of a person's missions: what becomes of their executions, from the table or by the layer."""

from typing import Any

import pytest

from agency.enums import EventKind
from agency.models import ApiToken, Execution
from agency.runtime.broadcast import Broadcaster
from agency.ws import socket
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
