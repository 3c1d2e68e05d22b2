"""A provider in trouble is left alone, tried by one call, and asked at the pace that it can bear."""

import heapq
import random
from datetime import UTC, datetime, timedelta

import pytest

from agency.runtime import gate_rules as rules
from agency.runtime.gate_rules import Admitted, Gate, Refused

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def fail(gate: Gate, now: float = 0.0, *, jitter: float = 0.0, **more: object) -> Gate:
    told = {"retry_after": None, "is_limit": False, "is_probe": False, **more}
    return rules.failed(gate, at(now), jitter=jitter, **told)


def failing() -> Gate:
    gate = Gate()
    for _ in range(rules.FAILURES_TO_SHUT):
        gate = fail(gate)
    return gate


def test_four_failures_in_a_row_shut_nothing_and_the_fifth_does() -> None:
    gate = Gate()
    for _ in range(4):
        gate = fail(gate)
        assert not gate.is_shut(at(0))
    gate = fail(gate)
    assert gate.is_shut(at(0.9)) and not gate.is_shut(at(1.1))
    assert rules.admit(gate, at(0.4)) == Refused(pytest.approx(0.6))


def test_a_gate_that_has_been_shut_is_tried_by_one_call_alone() -> None:
    first = rules.admit(failing(), at(5))
    assert isinstance(first, Admitted) and first.is_probe
    assert isinstance(rules.admit(first.gate, at(5)), Refused)
    forgotten = rules.admit(first.gate, at(5 + rules.PROBE_SECONDS + 1))
    assert isinstance(forgotten, Admitted) and forgotten.is_probe


def test_the_answer_to_the_probe_opens_it_for_all() -> None:
    probe = rules.admit(failing(), at(5))
    assert isinstance(probe, Admitted)
    assert rules.answered(probe.gate, at(6), is_probe=True) is None


def test_a_probe_that_fails_shuts_it_for_longer_each_time_up_to_an_end() -> None:
    gate, now, pauses = failing(), 1.0, []
    for _ in range(12):
        now += 1000
        probe = rules.admit(gate, at(now))
        assert isinstance(probe, Admitted)
        gate = fail(probe.gate, now, jitter=1.0, is_probe=True)
        assert gate.not_before is not None
        pauses.append((gate.not_before - at(now)).total_seconds())
    assert pauses[:3] == [4.0, 8.0, 16.0]
    assert pauses[-1] == rules.LONGEST_SHUT


def test_calls_under_way_when_it_was_shut_neither_lengthen_the_pause_nor_open_it() -> None:
    shut = failing()
    assert fail(shut, 0.1) == shut
    late = rules.answered(shut, at(0.1), is_probe=False)
    assert late is not None and late.is_shut(at(0.5)) and late.failures == 0


def test_a_rate_limit_shuts_it_for_as_long_as_it_asks_and_a_little_more() -> None:
    gate = fail(Gate(), retry_after=7.0, is_limit=True, jitter=0.5)
    assert gate.not_before == at(7.5)
    assert fail(gate, 1, retry_after=20.0, is_limit=True).not_before == at(21)


def test_what_a_provider_asks_is_not_believed_for_ever() -> None:
    gate = fail(Gate(), retry_after=1e9, is_limit=True, jitter=1.0)
    assert gate.not_before == at(rules.LONGEST_ASKED + 1)


def test_a_rate_limit_teaches_a_pace_that_calls_keep_by_waiting_or_by_coming_back() -> None:
    gate = fail(Gate(), is_limit=True)
    waits: list[float] = []
    while isinstance(asked := rules.admit(gate, at(10)), Admitted):
        waits.append(asked.wait)
        gate = asked.gate
    assert waits == [0, 0.25, 0.5, 0.75, 1.0]
    assert asked == Refused(1.25)


def test_answers_quicken_the_pace_until_nothing_is_left_to_remember() -> None:
    gate: Gate | None = fail(Gate(), is_limit=True)
    for n in range(2000):
        if gate is None:
            break
        gate = rules.answered(gate, at(10 + n / 100), is_probe=False)
    assert gate is None


def test_after_ten_quiet_minutes_it_says_nothing_any_more() -> None:
    gate = fail(Gate(), is_limit=True)
    assert not rules.is_outdated(gate, at(60))
    assert rules.is_outdated(gate, at(700))


class Bucket:
    """A provider that takes ten calls a second, ten at once, and refuses what is more."""

    def __init__(self) -> None:
        self.tokens, self.filled, self.answers, self.refusals = 10.0, 0.0, 0, 0

    def takes(self, now: float) -> bool:
        self.tokens = min(10.0, self.tokens + (now - self.filled) * 10)
        self.filled = now
        if self.tokens < 1:
            self.refusals += 1
            return False
        self.tokens -= 1
        self.answers += 1
        return True


class World:
    """Executions that each need some calls, slots for them, one gate and one provider, in made-up time."""

    def __init__(self, executions: int, calls: int, slots: int, seed: int) -> None:
        self.provider, self.dice = Bucket(), random.Random(seed)
        self.gate: Gate | None = None
        self.left = [calls] * executions
        self.free = slots
        self.due = [(number / 1000, number) for number in range(executions)]
        self.flights: list[tuple[float, int, bool, bool | None]] = []
        self.now = 0.0

    def run(self) -> None:
        while any(self.left):
            if self.free and self.due and (not self.flights or self.due[0] < self.flights[0][:2]):
                self._begin(*heapq.heappop(self.due))
            else:
                self._go_on(*heapq.heappop(self.flights))

    def _begin(self, now: float, number: int) -> None:
        self.now = now
        asked = rules.admit(self.gate or Gate(), at(now))
        if isinstance(asked, Refused):
            heapq.heappush(self.due, (now + asked.seconds * (1 + self.dice.random()), number))
            return
        self.gate = self.gate and asked.gate
        self.free -= 1
        heapq.heappush(self.flights, (now + asked.wait, number, asked.is_probe, None))

    def _go_on(self, now: float, number: int, is_probe: bool, taken: bool | None) -> None:
        self.now = now
        if taken is None and self.gate is not None and self.gate.is_shut(at(now)) and not is_probe:
            self.free += 1
            heapq.heappush(self.due, (now + 1.0 + self.dice.random(), number))
            return
        if taken is None:
            heapq.heappush(self.flights, (now + 0.15, number, is_probe, self.provider.takes(now)))
            return
        self.free += 1
        pause = 0.0
        if taken:
            self.left[number] -= 1
            self.gate = self.gate and rules.answered(self.gate, at(now), is_probe=is_probe)
        else:
            pause = 1.0 + self.dice.random()
            told = {"retry_after": 1.0, "is_limit": True, "is_probe": is_probe, "jitter": self.dice.random()}
            self.gate = fail(self.gate or Gate(), now, **told)
        if self.left[number]:
            heapq.heappush(self.due, (now + pause, number))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("slots", [4, 8, 16])
def test_fifty_executions_over_a_bucket_of_ten_a_second_hear_few_refusals(slots: int, seed: int) -> None:
    world = World(executions=50, calls=10, slots=slots, seed=seed)
    world.run()
    provider = world.provider
    assert provider.answers == 500
    assert provider.refusals / (provider.answers + provider.refusals) < 0.05
    assert world.now < 100  # fifty seconds are the least that the bucket allows
