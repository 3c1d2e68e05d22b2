"""What a run writes to its journal, and that a run over a filled journal pays for nothing twice."""

import hashlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from agency.agent import (
    Agent,
    AgentResult,
    Confirmation,
    ModelOutputInvalid,
    ModelUnavailable,
    RunParked,
    RunReleased,
    RunScope,
    RunStatus,
    ToolCallInfo,
    tool,
)
from agency.agent.testing import ScriptedLlm, call
from agency.enums import Effect
from tests.unit.agent.doubles import MemoryJournal

HASH = hashlib.sha256(b'{"n":1}').hexdigest()[:16]


class World:
    """Counts what tools really did."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def tools(self) -> list[Any]:
        @tool(effect="idempotent")
        def send(n: int) -> int:
            self.calls.append(n)
            return n * 10

        return [send]


def run(journal: MemoryJournal, llm: ScriptedLlm, tools: list[Any], **options: Any) -> AgentResult:
    return Agent("clerk", llm, tools=tools, scope=RunScope(journal=journal), **options).run("go")


def test_keys_name_turn_step_ordinal_tool_and_the_hash_of_the_arguments() -> None:
    journal = MemoryJournal()
    run(journal, ScriptedLlm([call("send", "a", n=1), call("send", "b", n=1)], "done"), World().tools())
    assert list(journal.entries) == [
        "1:user",
        "1:0:model",
        f"1:0:0:send:{HASH}",
        "1:0:results",
        "1:1:model",
    ]
    assert list(journal.intents) == [f"1:0:0:send:{HASH}", f"1:0:1:send:{HASH}"]


def test_the_hash_does_not_depend_on_the_order_of_the_arguments() -> None:
    @tool
    def pair(a: int, b: int) -> int:
        return a + b

    keys: list[str] = []
    for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
        journal = MemoryJournal()
        run(journal, ScriptedLlm(call("pair", **arguments), "3"), [pair])
        keys += journal.intents
    assert keys[0] == keys[1]


def test_the_answer_is_recorded_before_its_tools_run_and_the_intent_before_the_call() -> None:
    journal = MemoryJournal()
    run(journal, ScriptedLlm(call("send", n=1), "done"), World().tools())
    assert journal.log[1:4] == [
        ("record", "1:0:model"),
        ("intend", f"1:0:0:send:{HASH}"),
        ("record", "1:0:results"),
    ]


@pytest.mark.parametrize("effect", list(Effect))
def test_a_result_is_written_by_itself_only_where_another_call_is_still_to_end(effect: Effect) -> None:
    @tool(effect=effect, parallel=False)
    def look(n: int) -> int:
        return n

    journal = MemoryJournal()
    run(journal, ScriptedLlm([call("look", str(n), n=n) for n in range(3)], "done"), [look])
    written = [key for kind, key in journal.log if kind == "record" and key.startswith("1:0:")]
    assert len(written) == 2 + (0 if effect is Effect.READ else 2)


def test_a_signal_that_comes_while_the_last_call_ends_does_not_lose_its_result() -> None:
    done: list[int] = []

    def checkpoint() -> None:
        if done:
            raise RunReleased("shutting down")

    @tool(timeout=60)
    def pay(n: int) -> int:
        done.append(n)
        time.sleep(0.3)  # longer than the run waits between two looks at the signal
        return n

    journal = MemoryJournal()
    agent = Agent(
        "c", ScriptedLlm(call("pay", n=1)), tools=[pay], scope=RunScope(journal, checkpoint=checkpoint)
    )
    with pytest.raises(RunReleased):
        agent.run("go")
    (key,) = journal.intents
    assert journal.entries[key].result["content"] == 1


def test_a_read_is_not_announced() -> None:
    @tool(effect=Effect.READ)
    def look() -> int:
        return 1

    journal = MemoryJournal()
    run(journal, ScriptedLlm(call("look"), "done"), [look])
    assert not journal.intents


def test_the_idempotency_key_is_the_scope_and_the_key_for_journal_and_tool() -> None:
    seen: list[str] = []

    @tool
    def pay(info: ToolCallInfo) -> None:
        seen.append(info.idempotency_key)

    journal = MemoryJournal("exec:7")
    run(journal, ScriptedLlm(call("pay"), "done"), [pay])
    ((key, (effect, announced)),) = journal.intents.items()
    assert effect is Effect.UNSAFE
    assert seen == [announced] == [f"exec:7:{key}"]


def test_without_a_scope_the_execution_id_makes_the_key_unique() -> None:
    @tool
    def pay(info: ToolCallInfo) -> str:
        return info.idempotency_key

    result = Agent("clerk", ScriptedLlm(call("pay"), "done"), tools=[pay]).run("go")
    content = result.context.events[2].tool_results[0].content
    assert content.startswith(f"{result.context.execution_id}:1:0:0:pay:")


SCRIPT = ([call("send", "a", n=1), call("send", "b", n=2)], "", call("send", "c", n=3), "done")


@pytest.mark.parametrize("died_after", range(9))
def test_a_run_started_anew_repeats_only_what_was_not_recorded(died_after: int) -> None:
    journal, world = MemoryJournal(), World()
    first = run(journal, ScriptedLlm(*SCRIPT), world.tools())
    recorded = list(journal.entries)
    assert len(recorded) == 9
    journal.forget_after(died_after)
    kept = list(journal.entries)
    answers = [a for n, a in enumerate(SCRIPT) if f"1:{n}:model" not in kept]
    llm, again = ScriptedLlm(*answers), World()
    second = run(journal, llm, again.tools())
    assert (second.output, second.status) == (first.output, first.status)
    assert llm.remaining == 0
    ended = max(sum(":send:" in key for key in kept), 2 * ("1:0:results" in kept)) + ("1:2:results" in kept)
    assert len(again.calls) == 3 - ended
    assert list(journal.entries) == recorded
    assert [[item.type for item in event.content] for event in second.context.events] == [
        [item.type for item in event.content] for event in first.context.events
    ]


def test_replayed_events_are_the_recorded_ones() -> None:
    journal = MemoryJournal()
    first = run(journal, ScriptedLlm(*SCRIPT), World().tools())
    second = run(journal, ScriptedLlm(), World().tools())
    assert [event.id for event in second.context.events] == [event.id for event in first.context.events]
    assert second.usage == first.usage


def test_a_failed_model_call_is_recorded_but_never_recalled() -> None:
    journal = MemoryJournal()
    for _ in range(2):
        result = run(journal, ScriptedLlm(ModelUnavailable("busy", 1.0)), [], model_retries=0)
        assert result.stop_reason == "model_unavailable"
    assert run(journal, ScriptedLlm("here"), []).output == "here"
    assert sum("model-error" in key for key in journal.entries) == 2


def test_an_unreadable_answer_is_replayed_with_its_correction() -> None:
    journal = MemoryJournal()
    run(journal, ScriptedLlm(ModelOutputInvalid("bad"), "good"), [])
    assert run(journal, ScriptedLlm(), []).output == "good"


def test_a_signal_from_the_journal_leaves_the_run_before_the_tool_is_called() -> None:
    class Careful(MemoryJournal):
        def intend(self, key: str, effect: Effect, idempotency_key: str) -> None:
            raise RunParked("may have happened")

    journal, world = Careful(), World()
    with pytest.raises(RunParked):
        run(journal, ScriptedLlm(call("send", n=1)), world.tools())
    assert not world.calls
    assert list(journal.entries) == ["1:user", "1:0:model"]


def test_the_journal_is_only_used_on_the_runs_own_thread() -> None:
    import threading

    threads: set[int] = set()

    class Watched(MemoryJournal):
        def record(self, key: str, result: Any, events: Any, settles: Any = ()) -> None:
            threads.add(threading.get_ident())
            super().record(key, result, events)

    run(Watched(), ScriptedLlm([call("send", str(n), n=n) for n in range(5)], "done"), World().tools())
    assert threads == {threading.get_ident()}


def test_a_second_turn_has_keys_of_its_own() -> None:
    journal = MemoryJournal()
    agent = Agent("clerk", ScriptedLlm("a", "b"), scope=RunScope(journal=journal))
    agent.run("two", agent.run("one").context)
    assert list(journal.entries) == ["1:user", "1:0:model", "2:user", "2:1:model"]


def confirmed() -> Callable[..., Any]:
    @tool(requires_confirmation=True)
    def delete(n: int) -> str:
        return f"deleted {n}"

    return delete


def test_a_run_started_anew_with_a_decision_goes_on_where_a_person_was_asked() -> None:
    journal, world = MemoryJournal(), World()
    tools = [*world.tools(), confirmed()]
    asked = run(journal, ScriptedLlm([call("send", "a", n=1), call("delete", "b", n=2)]), tools)
    assert asked.status is RunStatus.INTERRUPTED
    agent = Agent("clerk", ScriptedLlm("done"), tools=tools, scope=RunScope(journal=journal))
    result = agent.run("go", confirmations=[Confirmation("b", "approve")])
    assert result.output == "done"
    assert world.calls == [1]
    assert "1:0:results:2" in journal.entries
