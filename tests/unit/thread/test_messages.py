"""What a thread shows of a run's events."""

from agency.agent import Agent
from agency.agent.testing import ScriptedLlm, call
from agency.thread.store import messages


def test_a_run_inside_a_call_is_not_said_in_the_thread_but_its_result_is() -> None:
    scout = Agent("scout", ScriptedLlm("seen")).as_tool("Looks.")
    llm = ScriptedLlm(call("scout", "c", task="look"), "done")
    events = Agent("boss", llm, tools=[scout]).run("go").context.events
    said = [(one["seq"], one["role"], one["content"]) for one in messages(enumerate(events, 1))]
    assert said == [
        (1, "user", "go"),
        (2, "assistant", '→ scout({"task": "look"})'),
        (5, "tool", "← scout: seen"),
        (6, "assistant", "done"),
    ]
