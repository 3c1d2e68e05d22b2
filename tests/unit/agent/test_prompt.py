"""Request builders: what they leave out, what they never do, and how long a request's beginning holds."""

import gc
import time
from itertools import pairwise
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agency.agent import Agent, Event, ExecutionContext, LlmRequest, Message, ToolCall, tool
from agency.agent.history import history_of
from agency.agent.prompt import EverythingBuilder, SelectingBuilder, TrimmingBuilder, WindowBuilder
from agency.agent.testing import ScriptedLlm, call
from agency.errors import ConfigurationError, ContextOverflow
from tests.unit.agent.doubles import check
from tests.unit.agent.stories import add, add_step, add_turn, built, shown, story

LONG = "x" * 1000


def selection_of(event: Event) -> dict[str, Any]:
    assert event.call is not None
    selection: dict[str, Any] = event.call["request"]
    return selection


def test_everything_is_shown_in_order() -> None:
    assert shown(EverythingBuilder(), story(1, steps=1)) == ["q-1", ">c0", "<c0:ok", "a-1", "q-now"]


def test_a_window_shows_the_task_a_note_and_the_newest_turns() -> None:
    assert shown(WindowBuilder(turns=2, block=1), story(3, steps=1)) == [
        "q-1",
        "[Not shown: turns 1 to 2 (but for the first message) of this conversation]",
        "q-3",
        ">c4",
        "<c4:ok",
        "a-3",
        "q-now",
    ]


def test_a_window_moves_by_whole_blocks() -> None:
    context = story(1)
    builder = WindowBuilder(turns=2, block=3)
    firsts: list[str] = []
    for turn in range(8):
        firsts.append(next(text for text in shown(builder, context)[1:] if text.startswith("q-")))
        add_turn(context, f"more-{turn}")
    assert firsts == ["q-now", "q-now", "q-now", "q-more-1", "q-more-1", "q-more-1", "q-more-4", "q-more-4"]


def test_the_newest_question_is_shown_even_by_the_smallest_window() -> None:
    texts = shown(WindowBuilder(turns=1, block=1), story(5, steps=2))
    assert (texts[0], texts[-1], len(texts)) == ("q-1", "q-now", 3)


def test_old_results_are_cut_with_a_note_and_the_newest_are_whole() -> None:
    context = story(0)
    for _ in range(3):
        add_step(context, LONG)
    texts = shown(TrimmingBuilder(steps=1, block=1, characters=5), context)
    cut = "xxxxx\n[the rest of these 1,000 characters is left out to save space]"
    assert texts == ["q-now", ">c0", f"<c0:{cut}", ">c1", f"<c1:{cut}", ">c2", f"<c2:{LONG}"]


def test_a_short_old_result_is_left_as_it_is() -> None:
    context = story(2, steps=1, result={"n": 1})
    assert shown(TrimmingBuilder(steps=1, block=1), context)[2] == '<c0:{"n": 1}'


def test_trimming_does_not_touch_the_record() -> None:
    context = story(3, steps=2, result=LONG)
    before = [event.model_copy(deep=True) for event in context.events]
    built(SelectingBuilder(WindowBuilder(1, 1), TrimmingBuilder(1, 1)), context)
    assert context.events == before


def test_parts_are_combined() -> None:
    context = story(3, steps=2, result=LONG)
    texts = shown(SelectingBuilder(TrimmingBuilder(1, 1, 4), WindowBuilder(2, 1)), context)
    assert [text[:8] for text in texts] == [
        "q-1", "[Not sho", "q-3", ">c6", "<c6:xxxx", ">c7", "<c7:xxxx", "a-3", "q-now",
    ]  # fmt: skip
    assert [len(text) for text in texts if text.startswith("<")] == [71, 1004]


def test_the_record_of_a_call_says_what_was_selected() -> None:
    request = built(SelectingBuilder(WindowBuilder(2, 1), TrimmingBuilder(1, 1)), story(3, steps=1))
    assert request.selection is not None
    digest = request.selection.pop("digest")
    assert len(digest) == 64
    assert request.selection == {
        "items": 7,
        "of": 13,
        "turns_out": 2,
        "steps_trimmed": 2,
        "characters": 200,
    }


def test_a_digest_tells_what_was_shown_whatever_the_way_there() -> None:
    def digest(context: ExecutionContext) -> str:
        return (built(builder, context).selection or {})["digest"]

    builder = TrimmingBuilder(steps=2, block=2, characters=10)
    grown = story(0)
    for step in range(9):
        add_step(grown, LONG)
        fresh = ExecutionContext(events=list(grown.events))
        assert digest(grown) == digest(fresh), step
    longer = ExecutionContext(events=list(grown.events))
    add_step(longer)
    assert digest(longer) != digest(grown)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: WindowBuilder(turns=0), "turns"),
        (lambda: WindowBuilder(block=0), "block"),
        (lambda: TrimmingBuilder(steps=0), "steps"),
        (lambda: TrimmingBuilder(characters=-1), "characters"),
    ],
)
def test_a_size_that_keeps_nothing_is_refused(make: Any, field: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{field} is .*; give 1 or more"):
        make()


def test_at_least_nine_of_ten_calls_of_a_long_run_begin_as_the_call_before() -> None:
    requests = long_run(TrimmingBuilder(), 300)
    stable = sum(
        after.contents[: len(before.contents)] == before.contents for before, after in pairwise(requests)
    )
    assert stable >= 0.9 * (len(requests) - 1)
    sizes = [sum(len(str(item)) for item in request.contents) for request in requests]
    assert sizes[-1] < 0.5 * sizes[20] * 300 / 20, "and yet most of the old results are gone"


def long_run(builder: SelectingBuilder, steps: int) -> list[LlmRequest]:
    @tool(effect="read")
    def look(n: int) -> str:
        """Look."""
        return f"{n} {LONG}"

    llm = ScriptedLlm(*[call("look", f"c{n}", n=n) for n in range(steps)], "done")
    result = Agent("clerk", llm, tools=[look], max_steps=steps + 1, request_builder=builder).run("go")
    assert result.output == "done"
    return llm.requests


@pytest.mark.parametrize(
    "builder",
    [EverythingBuilder(), TrimmingBuilder(), SelectingBuilder(WindowBuilder(), TrimmingBuilder())],
    ids=["everything", "trimming", "window and trimming"],
)
def test_selecting_costs_the_same_at_step_1000_as_at_step_10(builder: SelectingBuilder) -> None:
    """Beyond one copy of the list of what is shown. Measured in turns, since other work slows both."""
    young, old = story(0), story(0)
    for context, steps in ((young, 10), (old, 900)):
        for _ in range(steps):
            add_step(context, LONG)
            builder.view(history_of(context))
    gc.disable()
    costs = [(cost_of_a_step(builder, young), cost_of_a_step(builder, old)) for _ in range(100)]
    gc.enable()
    assert median(late for _, late in costs) <= 1.5 * median(early for early, _ in costs)


def cost_of_a_step(builder: SelectingBuilder, context: ExecutionContext) -> int:
    """Nanoseconds of CPU that it takes to select once more after one more step."""
    add_step(context, LONG)
    history = history_of(context)
    began = time.thread_time_ns()
    builder.view(history)
    return time.thread_time_ns() - began


class Small(ScriptedLlm):
    """A model that cannot read more than so many characters."""

    def __init__(self, most: int, *answers: Any, **options: Any) -> None:
        super().__init__(*answers, **options)
        self.most = most
        self.refused = 0

    def generate(self, request: LlmRequest) -> Any:
        if sum(len(item.model_dump_json()) for item in request.contents) > self.most:
            self.refused += 1
            raise ContextOverflow("too long")
        return super().generate(request)


def test_a_request_that_is_too_large_is_made_smaller_once_and_stays_so() -> None:
    context = story(0)
    for _ in range(10):
        add_step(context, LONG)
    llm = Small(7000, call("look", "n1"), "done")
    result = Agent("clerk", llm).run("go on", context)
    assert (result.output, llm.refused) == ("done", 1)
    assert [event.error.code for event in context.events if event.error] == ["context_overflow"]
    first, second = [selection_of(event) for event in context.events if event.call]
    assert (first["shrunk"], first["steps_trimmed"]) == (True, 9)
    assert "shrunk" not in second
    assert second["steps_trimmed"] == 9


def test_turns_go_where_shorter_results_are_not_enough() -> None:
    context = story(40, steps=1)
    llm = Small(8000, "done", "again")
    agent = Agent("clerk", llm)
    assert agent.run(context=context).output == "done"
    (first,) = [selection_of(event) for event in context.events if event.call]
    assert 0 < first["turns_out"] < 40
    again = ExecutionContext("e", list(context.events), context.current_step)
    assert agent.run("and now?", again).output == "again"
    assert llm.refused == 1


def test_a_request_that_cannot_be_made_smaller_ends_the_turn() -> None:
    llm = Small(100, "never")
    result = Agent("clerk", llm).run("x" * 500)
    assert (result.status, result.stop_reason, llm.refused) == ("failed", "context_overflow", 1)


def test_a_request_that_is_too_large_even_then_ends_the_turn() -> None:
    llm = Small(100, "never")
    result = Agent("clerk", llm).run(context=story(9, steps=1, result=LONG))
    assert (result.status, result.stop_reason, llm.refused) == ("failed", "context_overflow", 2)


class Careless:
    """A builder of one's own that cuts where it should not."""

    def __init__(self, cut: Any) -> None:
        self.cut = cut

    def build(self, context: ExecutionContext, request: LlmRequest) -> LlmRequest:
        request.contents = self.cut(list(history_of(context).contents))
        return request


@pytest.mark.parametrize("cut", [lambda items: items[2:], lambda items: [*items[:2], *items[3:]]])
def test_what_a_careless_builder_leaves_is_repaired_and_recorded(cut: Any) -> None:
    context = story(1, steps=2)
    llm = ScriptedLlm("done")
    Agent("clerk", llm, request_builder=Careless(cut)).run(context=context)
    check(llm.requests[0].contents)
    sent = selection_of(context.events[-1])
    assert sent["items"] == len(llm.requests[0].contents)
    assert len(sent["digest"]) == 64


builders = st.builds(
    lambda turns, block, steps: SelectingBuilder(WindowBuilder(turns, block), TrimmingBuilder(steps, block)),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 4),
)
moves = st.lists(st.sampled_from(["turn", "step", "open", "late"]), max_size=25)


@given(builders, moves)
@settings(max_examples=100, deadline=None)
def test_whatever_is_left_out_the_request_is_fit_to_send(builder: SelectingBuilder, moves: list[str]) -> None:
    """Task and newest question are there, calls and results are paired, old and new views agree."""
    context = ExecutionContext(execution_id="e")
    add(context, "user", Message(role="user", content="the task"))
    for place, move in enumerate(moves):
        history = history_of(context)
        if move == "turn":
            add(context, "user", Message(role="user", content=f"question {place}"))
        elif move == "step":
            add_step(context, f"{place} {LONG}")
        elif move == "open" or not history.open_calls:
            add(context, "clerk", ToolCall(tool_call_id=f"open{place}", name="look"))
        else:
            _answer(context, history.open_calls)
        if history_of(context).open_calls:
            continue
        contents = built(builder, context).contents
        check(contents)
        asked = [item.content for item in contents if isinstance(item, Message) and item.role == "user"]
        questions = [event.text for event in context.events if event.author == "user"]
        assert (asked[0], asked[-1]) == ("the task", questions[-1])
        assert contents == built(builder, ExecutionContext("e", list(context.events))).contents
        if (history := history_of(context)).step_starts[-1:] > history.turn_starts[-1:]:
            assert all(item in contents for item in history.step_results), "the newest results are whole"


def _answer(context: ExecutionContext, open_calls: dict[str, ToolCall]) -> None:
    from agency.agent.repair import unanswered

    add(context, "clerk", *unanswered(list(open_calls.values())))
