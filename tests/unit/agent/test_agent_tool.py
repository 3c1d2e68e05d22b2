"""An agent as a tool of another: answer, usage, record, limits, questions, faults, and replay."""

import threading
from typing import Any

import pytest

from agency.agent import (
    Agent,
    AgentToolConfig,
    BaseAgent,
    BaseAgentTool,
    Confirmation,
    ContentItem,
    Effect,
    Event,
    ExecutionContext,
    Hooks,
    Limits,
    LlmRequest,
    ModelRefused,
    ModelUnavailable,
    RunCancelled,
    RunReleased,
    RunScope,
    RunStatus,
    ToolDefinitionError,
    tool,
)
from agency.agent.testing import Delay, ScriptedLlm, call
from agency.agent.tools import Conduct
from agency.errors import InvalidInput
from tests.unit.agent.doubles import MemoryJournal


class Desk:
    """A boss that hands tasks to a researcher with the tools `look` (free) and `buy` (asks a person)."""

    def __init__(self, *inner: Any, conduct: Conduct | None = None, **options: Any) -> None:
        self.done: list[str] = []
        self.journal = MemoryJournal()

        @tool(effect="idempotent")
        def look(at: str, context: ExecutionContext) -> str:
            self.done.append(at)
            context.state[at] = "seen"
            return f"saw {at}"

        @tool(effect="idempotent", requires_confirmation=True)
        def buy(what: str) -> str:
            self.done.append(f"bought {what}")
            return f"bought {what}"

        self.inner = ScriptedLlm(*inner)
        self.researcher = Agent("researcher", self.inner, "You search.", tools=[look, buy], **options)
        self.tool = self.researcher.as_tool("Searches.", name="research", conduct=conduct)

    def boss(self, *outer: Any, journaled: bool = False, **options: Any) -> Agent:
        if journaled:
            options["scope"] = RunScope(journal=self.journal)
        self.outer = ScriptedLlm(*outer)
        return Agent("boss", self.outer, tools=[self.tool], **options)


def research(task: str = "find it", call_id: str = "c") -> Any:
    return call("research", call_id, task=task)


def reload(context: ExecutionContext) -> ExecutionContext:
    return ExecutionContext.from_json(context.to_json())


def types(contents: list[ContentItem]) -> list[str]:
    return [item.type for item in contents]


def test_the_inner_answer_is_the_result_of_the_call() -> None:
    desk = Desk("it is here")
    result = desk.boss(research("where?"), "done").run("go")
    assert result.output == "done"
    assert result.context.events[-2].tool_results[0].content == "it is here"
    assert [getattr(item, "content", None) for item in desk.inner.requests[0].contents] == ["where?"]
    assert desk.inner.requests[0].instructions == ["You search."]


def test_the_outer_model_sees_only_call_and_result() -> None:
    desk = Desk(call("look", at="a"), "found")
    desk.boss(research(), "done").run("go")
    assert types(desk.outer.requests[1].contents) == ["message", "tool_call", "tool_result"]


def test_the_inner_events_are_in_the_outer_record_marked_with_their_call() -> None:
    desk = Desk(call("look", at="a"), "found")
    context = desk.boss(research(), "done").run("go").context
    assert [(event.author, event.within) for event in context.events] == [
        ("user", []),
        ("boss", []),
        ("boss", ["c"]),
        ("researcher", ["c"]),
        ("researcher", ["c"]),
        ("researcher", ["c"]),
        ("boss", []),
        ("boss", []),
    ]
    assert {event.execution_id for event in context.events} == {context.execution_id}
    assert context.current_step == 2
    assert reload(context) == context


def test_the_inner_usage_counts_for_the_outer_run() -> None:
    desk = Desk(call("look", at="a"), "found")
    result = desk.boss(research(), "done").run("go")
    assert (result.usage.model_calls, result.usage.tool_calls) == (4, 2)
    spent = [event.usage.input_tokens for event in result.context.events if event.usage]
    assert result.usage.input_tokens == sum(spent) > 0


def test_the_agents_share_the_state() -> None:
    context = Desk(call("look", at="a"), "found").boss(research(), "done").run("go").context
    assert context.state == {"a": "seen"}


def test_a_new_turn_of_the_outer_agent_begins_a_new_inner_run() -> None:
    desk = Desk("one", "two")
    boss = desk.boss(research(call_id="c"), "done", research(call_id="c"), "done again")
    context = boss.run("go").context
    assert boss.run("and again", context).output == "done again"
    assert types(desk.inner.requests[1].contents) == ["message"]


def test_an_inner_run_without_an_answer_is_an_error_result_that_says_why() -> None:
    desk = Desk(call("look", at="a"), max_steps=1)
    result = desk.boss(research(), "pity").run("go")
    assert result.output == "pity"
    given = result.context.events[-2].tool_results[0]
    assert (given.status, given.content) == ("error", "research ended without an answer (max_steps)")


def test_an_inner_refusal_is_an_error_result_with_its_reason() -> None:
    result = Desk(ModelRefused("not this")).boss(research(), "pity").run("go")
    content = result.context.events[-2].tool_results[0].content
    assert content == "research ended without an answer (model_refused): not this"


def test_several_inner_runs_work_at_the_same_time_and_stay_apart() -> None:
    both = threading.Barrier(2, timeout=60)

    @tool(effect="idempotent")
    def meet(n: int) -> int:
        both.wait()
        return n

    def reply(request: Any) -> Any:
        asked = request.contents[0].content
        return call("meet", "m", n=int(asked)) if len(request.contents) == 1 else f"met {asked}"

    inner = Agent("inner", ScriptedLlm(reply, loop=True), tools=[meet])
    journal = MemoryJournal()
    calls = [call("inner", str(n), task=str(n)) for n in (1, 2)]
    tools = [inner.as_tool("Meets.")]
    boss = Agent("boss", ScriptedLlm(calls, "done"), tools=tools, scope=RunScope(journal=journal))
    context = boss.run("go").context
    assert [one.content for one in context.events[-2].tool_results] == ["met 1", "met 2"]
    for key in ("1", "2"):
        inside = [event for event in context.events if event.within == [key]]
        assert [event.text for event in (inside[0], inside[-1])] == [key, f"met {key}"]


def test_a_confirmation_inside_interrupts_the_outer_run_and_goes_on_there() -> None:
    desk = Desk([call("buy", "b", what="map"), call("look", "l", at="a")], "have it")
    boss = desk.boss(research(), "done")
    result = boss.run("go")
    assert (result.status, result.stop_reason) == (RunStatus.INTERRUPTED, "confirmation")
    assert [(one.tool_call_id, one.name) for one in result.pending] == [("c/b", "buy")]
    assert desk.done == ["a"]
    again = boss.run(context=reload(result.context), confirmations=[Confirmation("c/b", "approve")])
    assert (again.output, desk.done) == ("done", ["a", "bought map"])
    assert len(desk.inner.requests) == 2
    assert again.context.events[-2].tool_results[0].content == "have it"


def test_going_on_without_a_decision_stays_interrupted_and_asks_no_model() -> None:
    desk = Desk(call("buy", "b", what="map"))
    boss = desk.boss(research())
    context = boss.run("go").context
    again = boss.run(context=reload(context))
    assert (again.status, [one.tool_call_id for one in again.pending]) == (RunStatus.INTERRUPTED, ["c/b"])
    assert len(desk.inner.requests) == len(desk.outer.requests) == 1


def test_a_question_may_come_from_two_runs_down() -> None:
    desk = Desk(call("buy", "b", what="map"), "bought")
    middle = Agent("middle", ScriptedLlm(research(call_id="m"), "passed on"), tools=[desk.tool])
    boss = Agent(
        "boss", ScriptedLlm(call("middle", "c", task="x"), "done"), tools=[middle.as_tool("Passes on.")]
    )
    result = boss.run("go")
    assert [one.tool_call_id for one in result.pending] == ["c/m/b"]
    context = reload(result.context)
    again = boss.run(context=context, confirmations=[Confirmation("c/m/b", "approve", {"what": "atlas"})])
    assert (again.output, desk.done) == ("done", ["bought atlas"])
    assert again.context.events[-2].tool_results[0].content == "passed on"
    assert again.usage.model_calls == 6


def test_decisions_may_come_one_by_one() -> None:
    desk = Desk([call("buy", "x", what="x"), call("buy", "y", what="y")], "both")
    boss = desk.boss(research(), "done")
    context = boss.run("go").context
    result = boss.run(context=context, confirmations=[Confirmation("c/y", "reject", reason="dear")])
    assert [one.tool_call_id for one in result.pending] == ["c/x"]
    result = boss.run(context=context, confirmations=[Confirmation("c/x", "approve")])
    assert (result.output, desk.done) == ("done", ["bought x"])


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (Confirmation("c/z", "approve"), "no such call is pending"),
        (Confirmation("z/b", "approve"), "no such call is pending"),
        (Confirmation("c/b", "approve", {"what": 1}), "what: Input should be a valid string"),
    ],
)
def test_a_wrong_decision_inside_is_refused_before_anything_runs(
    decision: Confirmation, message: str
) -> None:
    desk = Desk(call("buy", "b", what="map"))
    boss = desk.boss(research())
    context = boss.run("go").context
    with pytest.raises(InvalidInput, match=message):
        boss.run(context=context, confirmations=[decision])
    assert desk.done == []


def test_new_input_while_an_inner_call_is_pending_is_refused_unless_told() -> None:
    desk = Desk(call("buy", "b", what="map"))
    boss = desk.boss(research(), "moving on")
    context = boss.run("go").context
    with pytest.raises(InvalidInput, match=r"buy \(c/b\)"):
        boss.run("something else", context)
    assert boss.run("something else", context, discard_pending=True).output == "moving on"
    assert types(desk.outer.requests[1].contents) == ["message", "tool_call", "tool_result", "message"]


def test_a_call_of_an_agent_may_itself_need_a_person() -> None:
    desk = Desk(call("buy", "b", what="map"), "ok", conduct=Conduct(requires_confirmation=True))
    boss = desk.boss(research(), "done")
    context = boss.run("go").context
    assert len(desk.inner.requests) == 0
    result = boss.run(context=context, confirmations=[Confirmation("c", "approve", {"task": "other"})])
    assert desk.inner.requests[0].contents[0].model_dump()["content"] == "other"
    assert [one.tool_call_id for one in result.pending] == ["c/b"]
    assert boss.run(context=context, confirmations=[Confirmation("c/b", "approve")]).output == "done"


def test_a_model_that_cannot_be_had_inside_fails_the_outer_run_which_then_goes_on() -> None:
    desk = Desk(call("look", at="a"), ModelUnavailable("busy", 7.0), "found")
    boss = desk.boss(research(), "done", model_retries=0)
    result = boss.run("go")
    assert (result.status, result.stop_reason, result.retry_after) == (
        RunStatus.FAILED,
        "model_unavailable",
        7.0,
    )
    assert boss.run(context=reload(result.context)).output == "done"
    assert desk.done == ["a"]


def test_the_outer_limits_hold_inside() -> None:
    desk = Desk(*[call("look", at=str(n)) for n in range(20)], max_steps=20)
    result = desk.boss(research(), limits=Limits(max_model_calls=4)).run("go")
    assert (result.status, result.stop_reason) == (RunStatus.LIMIT, "max_model_calls")
    assert len(desk.inner.requests) == 3


def test_the_inner_limits_hold_beside_them() -> None:
    desk = Desk(*[call("look", at=str(n)) for n in range(9)], limits=Limits(max_tool_calls=1))
    result = desk.boss(research(), "done", limits=Limits(max_model_calls=9)).run("go")
    assert result.output == "done"
    assert desk.done == ["0"]
    assert "(max_tool_calls)" in result.context.events[-2].tool_results[0].content


def test_the_journal_has_the_inner_keys_under_the_call() -> None:
    desk = Desk(call("look", at="a"), "found")
    desk.boss(research(), "done", journaled=True).run("go")
    inner = [key for key in desk.journal.entries if key.startswith("c/")]
    assert inner == ["c/1:user", "c/1:0:model", "c/1:0:results", "c/1:1:model"]
    (look,) = [keys for key, keys in desk.journal.intents.items() if ":look:" in key]
    assert look[1].startswith("exec:1/c:1:0:0:look:")


def shape(events: list[Event]) -> list[Any]:
    return [event.model_dump(mode="json", exclude={"id", "timestamp", "call"}) for event in events]


LENGTH = 15


def script() -> tuple[list[Any], list[Any]]:
    inner = [[call("look", "x", at="a"), call("look", "y", at="b")], "one", call("look", at="c"), "two"]
    outer = [[research("1", "c"), call("nowhere", "n")], research("2", "d"), "done"]
    return outer, inner


@pytest.mark.parametrize("died_after", range(LENGTH + 1))
def test_a_run_started_anew_repeats_only_what_was_not_recorded(died_after: int) -> None:
    outer, inner = script()
    desk = Desk(*inner)
    whole = desk.boss(*outer, journaled=True).run("go", ExecutionContext("e"))
    assert len(desk.journal.entries) == LENGTH
    desk.journal.forget_after(died_after)
    kept = list(desk.journal.entries)
    answered = [key for key in kept if key.endswith(":model")]
    inside = sum(key.startswith(("c/", "d/")) for key in answered)
    again = Desk(*inner[inside:])
    again.journal = desk.journal
    result = again.boss(*outer[len(answered) - inside :], journaled=True).run("go", ExecutionContext("e"))
    assert shape(result.context.events) == shape(whole.context.events)
    assert result.usage == whole.usage
    # The call that ends last in a step is recorded with the results of all.
    looked = max(sum(":look:" in key for key in kept), 2 * ("c/1:0:results" in kept))
    looked += any(key.startswith("d/") and key.endswith(":results") for key in kept)
    assert again.done == ["a", "b", "c"][looked:]


def test_a_journaled_run_started_anew_with_a_decision_goes_on_inside() -> None:
    desk = Desk([call("buy", "b", what="map"), call("look", "l", at="a")], "have it")
    paused = desk.boss([research(), call("nowhere", "n")], journaled=True).run("go", ExecutionContext("e"))
    assert paused.status is RunStatus.INTERRUPTED
    again = Desk("have it")
    again.journal = desk.journal
    boss = again.boss("done", journaled=True)
    decisions = [Confirmation("c/b", "approve")]
    result = boss.run("go", ExecutionContext("e"), decisions)
    assert (result.output, again.done) == ("done", ["bought map"])
    third = Desk()
    third.journal = desk.journal
    replayed = third.boss(journaled=True).run("go", ExecutionContext("e"), decisions)
    assert (replayed.output, replayed.usage) == ("done", result.usage)


def test_a_run_taken_up_from_its_context_is_whole_when_it_is_replayed_from_the_journal() -> None:
    desk = Desk(call("buy", "b", what="map"), "have it")
    boss = desk.boss(research(), "done", journaled=True)
    context = reload(boss.run("go", ExecutionContext("e")).context)
    decisions = [Confirmation("c/b", "approve")]
    whole = boss.run(context=context, confirmations=decisions)
    again = Desk()
    again.journal = desk.journal
    replayed = again.boss(journaled=True).run("go", ExecutionContext("e"), decisions)
    assert shape(replayed.context.events) == shape(whole.context.events)
    assert replayed.usage == whole.usage


def test_ids_of_calls_cannot_be_taken_for_those_of_calls_inside() -> None:
    desk = Desk(call("buy", "b", what="map"), "have it")
    boss = desk.boss([research(call_id="c"), call("nowhere", "c/b")], "done")
    result = boss.run("go")
    assert [one.tool_call_id for one in result.context.events[1].tool_calls] == ["c", "c-b"]
    assert boss.run(context=result.context, confirmations=[Confirmation("c/b", "approve")]).output == "done"


class Gone(Exception):
    """A journal whose database is away."""


@pytest.mark.parametrize("together", [False, True])
def test_a_fault_of_the_journal_inside_is_a_fault_of_the_run(together: bool) -> None:
    class Failing(MemoryJournal):
        def record(self, key: str, result: Any, events: Any, settles: Any = ()) -> None:
            if key == "c/1:0:model":
                raise Gone("no database")
            super().record(key, result, events)

    desk = Desk(call("look", at="a"), "found", "found too", "and more")
    desk.journal = Failing()
    calls = [research(call_id="c"), research(call_id="d")] if together else research()
    with pytest.raises(Gone):
        desk.boss(calls, journaled=True).run("go")


@pytest.mark.parametrize("together", [False, True])
def test_a_cancel_stops_the_inner_run_at_its_next_step(together: bool) -> None:
    desk = Desk(*[call("look", str(n), at=str(n)) for n in range(9)], max_steps=9)
    calls = [research(call_id="c"), research(call_id="d")] if together else research()
    cancelled = threading.Event()

    def checkpoint() -> None:
        if len(desk.done) >= 2:
            cancelled.set()
            raise RunCancelled("stop")

    scope = RunScope(journal=desk.journal, checkpoint=checkpoint, is_cancelled=cancelled.is_set)
    with pytest.raises(RunCancelled):
        desk.boss(calls, scope=scope).run("go")
    assert len(desk.done) <= 4


def test_a_release_reaches_inner_runs_and_leaves_what_they_did_on_record() -> None:
    desk = Desk(*[call("look", str(n), at=str(n)) for n in range(20)], max_steps=9)

    def checkpoint() -> None:
        if len(desk.done) >= 3:
            raise RunReleased("shutting down")

    scope = RunScope(journal=desk.journal, checkpoint=checkpoint)
    with pytest.raises(RunReleased):
        desk.boss([research(call_id="c"), research(call_id="d")], scope=scope).run("go")
    recorded = [event for entry in desk.journal.entries.values() for event in entry.events]
    looked = [result for event in recorded for result in event.tool_results if result.name == "look"]
    assert len(looked) == len(desk.done)


def test_an_inner_run_that_takes_too_long_is_given_up_and_writes_nothing_more() -> None:
    release = threading.Event()

    def late(request: LlmRequest) -> str:
        release.wait(60)
        return "late"

    desk = Desk(late, conduct=Conduct(timeout=0.1))
    result = desk.boss(research(), "done", journaled=True).run("go")
    count = len(result.context.events)
    release.set()
    assert result.output == "done"
    given = result.context.events[-2].tool_results[0]
    assert given.content == "research gave no result within 0.1 seconds"
    for thread in threading.enumerate():
        if thread.name == "tool-research":
            thread.join(60)
    assert len(result.context.events) == count
    assert not any(key.endswith("c/1:0:model") for key in desk.journal.entries)


def test_inner_runs_with_a_timeout_may_follow_one_another() -> None:
    desk = Desk("one", "two", conduct=Conduct(timeout=60, parallel=False))
    context = desk.boss([research(call_id="c"), research(call_id="d")], "done").run("go").context
    assert [one.content for one in context.events[-2].tool_results] == ["one", "two"]


def test_on_event_sees_the_inner_events_too() -> None:
    seen: list[Event] = []
    result = Desk("found").boss(research(), "done", hooks=Hooks(on_event=seen.append)).run("go")
    assert seen == result.context.events


class Scout(BaseAgent):
    AGENT_KEY = "scout"
    NAME = "scout"
    DESCRIPTION = "Knows the way."
    SYSTEM_PROMPT = "You scout."


class ScoutTool(BaseAgentTool):
    NAME = "scout"
    AGENT = Scout


class Itself(BaseAgentTool):
    NAME = "itself"
    DESCRIPTION = "Asks itself."


class Loop(Scout):
    TOOLS = (Itself,)


Itself.AGENT = Loop


def test_a_class_tool_runs_its_agent_on_the_calling_agents_model() -> None:
    llm = ScriptedLlm(call("scout", task="where?"), "there", "done")
    boss = Agent("boss", llm, tools=[ScoutTool])
    assert boss.specs[0].description == "Knows the way."
    assert "sees nothing else" in boss.specs[0].parameters["properties"]["task"]["description"]
    assert boss.run("go").output == "done"
    assert llm.requests[1].instructions == ["You scout."]


def test_a_config_gives_it_a_model_of_its_own() -> None:
    own = ScriptedLlm("there")
    llm = ScriptedLlm(call("scout", task="where?"), "done")
    assert Agent("boss", llm, tools=[AgentToolConfig(ScoutTool, own)]).run("go").output == "done"
    assert len(own.requests) == 1


def test_the_prompt_may_be_made_of_typed_arguments() -> None:
    class Route(BaseAgentTool):
        """Finds routes."""

        NAME = "route"
        AGENT = Scout

        def prompt(self, start: str, end: str, stops: int = 0) -> str:
            return f"{start} to {end} with {stops} stops"

    llm = ScriptedLlm(call("route", start="a", end="b"), "straight on", "done")
    Agent("boss", llm, tools=[Route]).run("go")
    assert llm.requests[1].contents[0].model_dump()["content"] == "a to b with 0 stops"


def test_an_output_type_inside_arrives_as_json() -> None:
    inner = Agent("inner", ScriptedLlm('{"value": [1, 2]}'), output_type=list[int])
    boss = Agent("boss", ScriptedLlm(call("inner", task="x"), "done"), tools=[inner.as_tool("Counts.")])
    assert boss.run("go").context.events[-2].tool_results[0].content == [1, 2]


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: Itself(llm=ScriptedLlm()).as_tool(), "an agent cannot be a tool of itself: Itself → Itself"),
        (lambda: type("Bare", (BaseAgentTool,), {"NAME": "bare"})().as_tool(), "has no AGENT"),
        (lambda: Desk().researcher.as_tool(""), "say in a description"),
        (lambda: Desk(conduct=Conduct(Effect.READ, retries=1)), "set retries=0"),
    ],
)
def test_a_wrong_declaration_is_refused_with_the_fix(declare: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError, match=message):
        declare()


def test_a_slow_inner_model_does_not_hold_up_its_neighbour() -> None:
    slow = Agent("slow", ScriptedLlm(Delay(0.2, "late")))
    fast = Agent("fast", ScriptedLlm("early"))
    calls = [call("slow", "s", task="x"), call("fast", "f", task="x")]
    tools = [slow.as_tool("Slow."), fast.as_tool("Fast.")]
    context = Agent("boss", ScriptedLlm(calls, "done"), tools=tools).run("go").context
    said = [event.text for event in context.events if event.within]
    assert said.index("early") < said.index("late")


@pytest.mark.parametrize("at_once", [1, 2])
def test_the_calls_of_a_turn_and_of_the_runs_inside_them_stay_under_one_cap(at_once: int):
    @tool(effect="read")
    def look() -> str:
        return "a desk"

    scout = Agent("scout", ScriptedLlm(call("look"), loop=True), tools=[look])
    asked = [call("scout", str(n), task="look") for n in range(at_once)]
    llm = ScriptedLlm(asked, "done")
    boss = Agent("boss", llm, tools=[scout.as_tool("Scouts.")], limits=Limits(max_tool_calls=6))
    result = boss.run("go")
    assert result.usage.tool_calls <= 6
