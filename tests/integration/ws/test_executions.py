"""The socket of one execution: its log from any point on, to the end, whatever is lost on the way."""

import uuid
from typing import Any

import pytest

from agency.enums import EventKind
from agency.execution import service
from agency.models import ApiToken, Event, Execution
from agency.models.clock import Now
from agency.runtime.broadcast import Broadcaster
from agency.ws import executions, socket
from tests import servers
from tests.integration.rows import say
from tests.integration.ws.conftest import Headers, Open

pytestmark = pytest.mark.django_db(transaction=True)


def path(execution: Execution, after: object = 0) -> str:
    return f"/ws/executions/{execution.pk}/?after={after}"


def test_what_was_written_is_sent_then_what_comes_then_the_socket_is_closed(
    opened: Open, token: Headers, execution: Execution
) -> None:
    say(execution, EventKind.STARTED, attempt=1)
    say(execution, EventKind.CONTENT)
    peer = opened(path(execution), token)
    first = peer.next()
    assert (first["type"], first["event"]["seq"], first["event"]["kind"]) == ("event", 1, "execution_started")
    assert first["event"]["data"] == {"attempt": 1}
    assert peer.numbers(1) == [2]

    say(execution, EventKind.CONTENT)
    assert peer.numbers(1) == [3]
    service.request_cancel(execution)
    assert peer.next()["event"]["kind"] == "execution_cancelled"
    assert peer.next() == 1000


def test_a_reconnect_goes_on_after_the_last_event(opened: Open, token: Headers, execution: Execution) -> None:
    for _ in range(4):
        say(execution, EventKind.CONTENT)
    assert opened(path(execution), token).numbers(4) == [1, 2, 3, 4]
    say(execution, EventKind.CONTENT)
    assert opened(path(execution, 3), token).numbers(2) == [4, 5]


def test_a_long_log_comes_whole_and_in_order(opened: Open, token: Headers, execution: Execution) -> None:
    many = 2 * executions.AT_ONCE + 7
    Event.objects.bulk_create(Event(execution=execution, seq=n) for n in range(1, many + 1))
    assert opened(path(execution), token).numbers(many) == list(range(1, many + 1))


def test_what_an_execution_that_has_ended_still_has_is_sent_before_the_close(
    opened: Open, token: Headers, execution: Execution
) -> None:
    service.request_cancel(execution)
    peer = opened(path(execution), token)
    assert peer.numbers(1) == [1]
    assert peer.next() == 1000
    assert opened(path(execution, 1), token).next() == 1000


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "²", str(2**63), "9" * 5_000])
def test_a_position_that_cannot_be_is_refused(
    opened: Open, token: Headers, execution: Execution, after: str
) -> None:
    assert opened(path(execution, after), token).next() == 4400


def test_what_is_not_there_or_not_ones_own_is_not_found(
    opened: Open, token: Headers, execution: Execution, django_user_model: Any
) -> None:
    assert opened(f"/ws/executions/{uuid.uuid4()}/", token).next() == 4404
    other = ApiToken.issue(django_user_model.objects.create_user("bob"), "tests")[1]
    assert opened(path(execution), {"Authorization": f"Bearer {other}"}).next() == 4404


def test_who_is_not_known_any_more_hears_no_more(
    opened: Open, token: Headers, execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "KNOWN_SECONDS", 0.05)
    say(execution, EventKind.CONTENT)
    peer = opened(path(execution), token)
    assert peer.numbers(1) == [1]
    ApiToken.objects.update(revoked_at=Now())
    assert peer.next() == 4401


def test_what_the_other_side_says_changes_nothing(opened: Open, token: Headers, execution: Execution) -> None:
    peer = opened(path(execution), token)
    peer.say("hello?")
    say(execution, EventKind.CONTENT)
    assert peer.numbers(1) == [1]


def test_with_a_layer_events_come_at_once(
    layer: Broadcaster,
    opened: Open,
    token: Headers,
    execution: Execution,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "LOOK_SECONDS", 3600.0)
    say(execution, EventKind.STARTED)
    peer = opened(path(execution), token)
    for seq in range(1, 5):
        assert peer.numbers(1) == [seq]
        say(execution, EventKind.CONTENT)


def test_a_layer_that_dies_loses_nothing_and_holds_up_no_end(
    layer: Broadcaster,
    valkey: servers.Server,
    opened: Open,
    token: Headers,
    execution: Execution,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "LOOK_SECONDS", 0.2)
    say(execution, EventKind.STARTED)
    peer = opened(path(execution), token)
    assert peer.numbers(1) == [1]
    valkey.stop()
    say(execution, EventKind.CONTENT)
    assert peer.numbers(1) == [2]

    later = opened(path(execution), token)
    assert later.numbers(2) == [1, 2]
    later.leave()
    valkey.start()
    say(execution, EventKind.CONTENT)
    assert peer.numbers(1) == [3]
    peer.leave()


def test_another_path_is_refused(opened: Open, token: Headers) -> None:
    assert opened("/ws/nothing/", token).next() == 403
