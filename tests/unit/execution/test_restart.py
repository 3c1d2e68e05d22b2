"""A run that dies at any write, and is started anew from its record, ends as if nothing had happened."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from agency.agent import Agent, Event, ExecutionContext, LlmRequest, Recorded, RunCancelled, RunScope, tool
from agency.agent.testing import ScriptedLlm, call
from agency.errors import ModelOutputInvalid
from agency.execution import Conversation, ExecutionResult, IsValidJsonValidator, JudgeValidator
from agency.execution.conversation import ClosedAttempt
from tests.unit.execution.definitions import Report, Topic


class Record:
    """Journal and ledger in memory, as a database would keep them; the `dies_at`-th write is the last."""

    def __init__(self) -> None:
        self.entries: dict[str, Recorded] = {}
        self.closed: list[ClosedAttempt] = []
        self.history: list[Event] = []
        self.writes = 0
        self.dies_at = 0

    @property
    def scope(self) -> str:
        return f"e:{len(self.closed) + 1}"

    def recall(self, key: str) -> Recorded | None:
        return self.entries.get(f"{self.scope}:{key}")

    def intend(self, key: str, effect: Any, idempotency_key: str) -> None:
        return None

    def record(self, key: str, result: Any, events: Sequence[Event], settles: Sequence[str] = ()) -> None:
        assert self.recall(key) is None, f"{key} was done twice"
        self.entries[f"{self.scope}:{key}"] = Recorded(result, copy.deepcopy(list(events)))
        self._written()

    def close_attempt(self, closed: ClosedAttempt) -> None:
        prefix = f"{self.scope}:"
        self.history += [
            event for key, one in self.entries.items() if key.startswith(prefix) for event in one.events
        ]
        self.closed.append(closed)
        self._written()

    def _written(self) -> None:
        self.writes += 1
        if self.writes == self.dies_at:
            raise RunCancelled("the process dies here")


class Thorough(Report):
    """Two questions in each attempt, a tool call in the first."""

    VALIDATORS = [IsValidJsonValidator]
    MAX_RETRIES = 1

    def execute(self, input_data: Topic, conversation: Conversation) -> str:
        conversation.ask("Look it up.")
        return conversation.ask("Report.")


class World:
    """What outlives a process: the record, and what was asked of model and tool."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.record = Record()
        self.answers = list(answers)
        self.asked: list[LlmRequest] = []
        self.looked_up = 0

    def process(self) -> Conversation:
        """A new process: nothing but the record is left of the last one."""

        @tool
        def look_up(place: str) -> str:
            """Look up the rain."""
            self.looked_up += 1
            return f"3 mm in {place}"

        def answer(request: LlmRequest) -> Any:
            self.asked.append(request)
            return self.answers[len(self.asked) - 1]

        llm = ScriptedLlm(answer, loop=True)
        agent = Agent("clerk", llm, tools=[look_up], scope=RunScope(journal=self.record), model_retries=0)
        last = self.record.closed[-1] if self.record.closed else None
        return Conversation(
            agent,
            context=ExecutionContext(
                execution_id="e",
                events=copy.deepcopy(self.record.history),
                current_step=last.state["current_step"] if last else 0,
            ),
            attempt=len(self.record.closed) + 1,
            feedback=last.feedback if last else None,
            previous_opening=last.state["opening"] if last else None,
            ledger=self.record,
        )


def run(world: World) -> tuple[ExecutionResult, Conversation]:
    while True:
        talk = world.process()
        try:
            return Thorough().run(Topic(), talk), talk
        except RunCancelled:
            world.record.dies_at = 0


def texts(talk: Conversation) -> list[str]:
    return [event.text for event in talk.context.events]


class Judged(Thorough):
    """One question in each attempt, and another model that judges the answer."""

    def execute(self, input_data: Topic, conversation: Conversation) -> str:
        return conversation.ask("Report.")


LOOKED_UP = [call("look_up", place="Kiel"), "3 mm."]
PASSES = [*LOOKED_UP, "It rained.", "Looked.", '{"mm": 3}']
FAILS = [*LOOKED_UP, "It rained.", "Looked.", "It rained, I say.", "I do not know JSON."]


@pytest.mark.parametrize("answers", [PASSES, FAILS], ids=["passes", "fails"])
def test_a_death_at_any_write_changes_neither_the_outcome_nor_what_was_paid(answers: list[Any]):
    whole = World(answers)
    result, talk = run(whole)
    assert result.success == (answers is PASSES)

    for dies_at in range(1, whole.record.writes + 1):
        world = World(answers)
        world.record.dies_at = dies_at
        again, after = run(world)
        assert again == result, f"died at write {dies_at}"
        assert len(world.asked) == len(answers)
        assert world.looked_up == 1
        assert texts(after) == texts(talk)
        assert [one.feedback for one in world.record.closed] == [one.feedback for one in whole.record.closed]
        assert [one.usage for one in world.record.closed] == [one.usage for one in whole.record.closed]
    assert whole.record.writes > 10


GOOD, BAD = ('{"passed": true, "feedback": ""}', '{"passed": false, "feedback": "Say how much."}')


@pytest.mark.parametrize(
    "verdicts", [[BAD, "what?", GOOD], [BAD, BAD], [ModelOutputInvalid("cut off", '{"pas'), GOOD]]
)
def test_a_verdict_that_was_given_is_not_paid_again(verdicts: list[Any]):
    def judged(world: World, asked: list[LlmRequest]) -> tuple[ExecutionResult, Conversation]:
        def verdict(request: LlmRequest) -> Any:
            asked.append(request)
            return verdicts[len(asked) - 1]

        made = type("Made", (Judged,), {"VALIDATORS": [JudgeValidator(ScriptedLlm(verdict, loop=True), "x")]})
        while True:
            talk = world.process()
            try:
                return made().run(Topic(), talk), talk
            except RunCancelled:
                world.record.dies_at = 0

    whole, paid = World(FAILS), list[LlmRequest]()
    result, talk = judged(whole, paid)
    for dies_at in range(1, whole.record.writes + 1):
        world, asked = World(FAILS), list[LlmRequest]()
        world.record.dies_at = dies_at
        again, after = judged(world, asked)
        assert again == result, f"died at write {dies_at}"
        assert (len(asked), len(world.asked)) == (len(paid), len(whole.asked))
        assert texts(after) == texts(talk)
        assert [one.usage for one in world.record.closed] == [one.usage for one in whole.record.closed]
    assert len(paid) == len(verdicts)
