"""Hooks around a run; those around a tool call are tested with the calls."""

from agency.agent import Agent, Event, Hooks, LlmRequest, LlmResponse, Message, RunScope
from agency.agent.context import ExecutionContext
from agency.agent.testing import ScriptedLlm
from tests.unit.agent.doubles import MemoryJournal


def test_before_llm_may_answer_instead_of_the_model() -> None:
    def cached(context: ExecutionContext, request: LlmRequest) -> LlmResponse | None:
        return LlmResponse([Message(role="assistant", content="cached")])

    llm = ScriptedLlm()
    assert Agent("clerk", llm, hooks=Hooks(before_llm=cached)).run("go").output == "cached"
    assert llm.requests == []


def test_on_event_sees_each_new_event_once_and_no_replayed_one() -> None:
    seen: list[Event] = []
    scope = RunScope(journal=MemoryJournal())
    hooks = Hooks(on_event=seen.append)
    context = Agent("clerk", ScriptedLlm("done"), hooks=hooks, scope=scope).run("go").context
    assert seen == context.events
    Agent("clerk", ScriptedLlm(), hooks=hooks, scope=scope).run("go")
    assert len(seen) == 2
