"""What a thread shows of a run's events."""

from agency.agent import Agent
from agency.agent.testing import ScriptedLlm, call
from agency.thread.store import message


def test_a_run_inside_a_call_is_not_said_in_the_thread_but_its_result_is() -> None:
    scout = Agent("scout", ScriptedLlm("seen")).as_tool("Looks.")
    llm = ScriptedLlm(call("scout", "c", task="look"), "done")
    events = Agent("boss", llm, tools=[scout]).run("go").context.events
    assert [said[:2] for said in map(message, events) if said] == [
        ("user", "go"),
        ("assistant", '→ scout({"task": "look"})'),
        ("tool", "← scout: seen"),
        ("assistant", "done"),
    ]
