"""Streaming: pieces for who watches, whole answers for the record, and no stream that holds a run up."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agency.agent import Agent, Hooks, LlmRequest, LlmResponse, Message, RunScope, tool
from agency.agent.llm import Delta
from agency.agent.streaming import NOTHING_YET, WAITING, collect
from agency.agent.testing import Break, ScriptedLlm, Stall, call
from agency.errors import ModelUnavailable, RunCancelled


@tool(effect="read")
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def watched(llm: Any, seen: list[Delta], **options: Any) -> Agent:
    return Agent("clerk", llm, tools=[double], hooks=Hooks(on_delta=seen.append), **options)


def never() -> bool:
    return False


def test_pieces_are_seen_as_they_come_and_the_record_holds_whole_answers() -> None:
    seen: list[Delta] = []
    llm = ScriptedLlm(call("double", "c1", n=2), "It is four.")
    result = watched(llm, seen).run("Double two.")
    assert result.output == "It is four."
    assert seen == [
        Delta("tool_call", "", "c1", "double"),
        Delta("tool_call", '{"n": 2}', "c1", "double"),
        Delta("text", "It "),
        Delta("text", "is "),
        Delta("text", "four."),
    ]
    plain = Agent("clerk", ScriptedLlm(*llm.answers), tools=[double]).run("Double two.")
    assert [event.content for event in result.context.events] == [
        event.content for event in plain.context.events
    ]


def test_without_a_watcher_nothing_is_streamed() -> None:
    class Whole(ScriptedLlm):
        def stream(self, request: LlmRequest) -> Iterator[Delta | LlmResponse]:
            raise AssertionError("nobody watches")

    assert Agent("clerk", Whole("hello")).run("hi").output == "hello"


def test_a_client_that_cannot_stream_is_asked_as_ever() -> None:
    class Plain:
        def generate(self, request: LlmRequest) -> LlmResponse:
            return LlmResponse([Message(role="assistant", content="hello")])

    seen: list[Delta] = []
    assert watched(Plain(), seen).run("hi").output == "hello"
    assert seen == []


def test_a_model_known_by_name_streams_if_its_client_does() -> None:
    seen: list[Delta] = []
    assert watched("scripted:tests.unit.agent.doubles:greeter", seen).run("hi").output == "hello"
    assert seen == [Delta("text", "hello")]


def test_a_stalled_stream_is_an_unavailable_model() -> None:
    stall = Stall("never to be seen")
    seen: list[Delta] = []
    agent = watched(ScriptedLlm(stall), seen, model_retries=0, settings={"chunk_timeout": 0.05})
    result = agent.run("hi")
    stall.over.set()
    assert (result.status, result.stop_reason) == ("failed", "model_unavailable")
    assert result.error is not None
    assert result.error.message == "the stream stalled: nothing came for 0.05 s"
    assert seen == [Delta("text", "never "), Delta("restart")]


def test_a_stream_that_never_begins_is_waited_for_as_long_as_a_whole_answer() -> None:
    stall = Stall("late", after=0)
    agent = watched(ScriptedLlm(stall), [], model_retries=0, settings={"timeout": 0.05})
    assert agent.run("hi").stop_reason == "model_unavailable"
    stall.over.set()


def test_a_broken_stream_is_taken_back_and_asked_for_again() -> None:
    seen: list[Delta] = []
    llm = ScriptedLlm(Break("The answer is", ModelUnavailable("reset", 0.0), after=2), "Well, four.")
    result = watched(llm, seen).run("Double two.")
    assert result.output == "Well, four."
    assert [piece.text or piece.kind for piece in seen] == ["The ", "answer ", "restart", "Well, ", "four."]
    assert [event.error.code for event in result.context.events if event.error] == ["model_unavailable"]


def test_a_failure_before_the_first_piece_takes_nothing_back() -> None:
    seen: list[Delta] = []
    llm = ScriptedLlm(Break("", ModelUnavailable("reset", 0.0), after=0), "hello")
    watched(llm, seen).run("hi")
    assert seen == [Delta("text", "hello")]


def test_a_stream_without_an_answer_is_an_unavailable_model() -> None:
    def stream() -> Iterator[Delta | LlmResponse]:
        yield Delta("text", "half")

    with pytest.raises(ModelUnavailable, match="ended without an answer"):
        collect(stream, lambda _: None, {}, never)


def test_what_a_stream_raises_reaches_who_asked() -> None:
    def stream() -> Iterator[Delta | LlmResponse]:
        raise RuntimeError("a bug in the client")
        yield

    with pytest.raises(RuntimeError, match="a bug"):
        collect(stream, lambda _: None, {}, never)


def test_a_cancelled_run_stops_waiting_for_a_stalled_stream() -> None:
    stall = Stall("never")
    cancelled = threading.Event()
    hooks = Hooks(on_delta=lambda _: cancelled.set())
    agent = Agent("clerk", ScriptedLlm(stall), hooks=hooks, scope=RunScope(is_cancelled=cancelled.is_set))
    with pytest.raises(RunCancelled):
        agent.run("hi")
    stall.over.set()


def trickle() -> Iterator[Delta | LlmResponse]:
    while True:
        yield Delta("text", "and ")


def test_a_stream_that_never_ends_is_cut() -> None:
    with pytest.raises(ModelUnavailable, match=r"not over within 0\.05 s"):
        collect(trickle, lambda _: None, {"stream_timeout": 0.05}, never)


def test_a_cancelled_run_stops_a_stream_that_never_pauses() -> None:
    seen: list[Delta] = []
    with pytest.raises(RunCancelled):
        collect(trickle, seen.append, {}, lambda: len(seen) > 10)


def test_a_stream_that_nobody_reads_any_more_is_closed() -> None:
    closed = threading.Event()
    go_on = threading.Event()

    def stream() -> Iterator[Delta | LlmResponse]:
        try:
            yield Delta("text", "one")
            go_on.wait(10)
            yield Delta("text", "two")
            yield Delta("text", "three")
        finally:
            closed.set()

    def look_away(_: Delta) -> None:
        raise KeyError("watcher")

    with pytest.raises(KeyError):
        collect(stream, look_away, {}, never)
    go_on.set()
    assert closed.wait(10)


class Slow:
    """Waits for its turn at the model, then sends what cannot be shown yet, and at last the answer."""

    def generate(self, request: LlmRequest) -> LlmResponse:
        raise AssertionError("it is asked for a stream")

    def stream(self, request: LlmRequest) -> Iterator[Delta | LlmResponse]:
        for piece in [WAITING] * 6 + [NOTHING_YET] * 6:
            time.sleep(0.1)  # the slow model itself: together more than any limit that is set
            yield piece
        yield Delta("text", "hi")
        yield LlmResponse([Message(role="assistant", content="hi")])


def test_a_client_that_waits_for_its_turn_or_has_nothing_to_show_is_not_stalled():
    seen: list[Delta] = []
    settings = {"timeout": 1.0, "chunk_timeout": 1.0}
    hooks = Hooks(on_delta=seen.append)
    result = Agent("clerk", Slow(), hooks=hooks, settings=settings, model_retries=0).run("go")
    assert (result.output, seen) == ("hi", [Delta("text", "hi")])
