"""A language model that follows the task's own script and writes each request on the bill.

The task is one section an attempt, parted by `|`; a section is steps, parted by `;`: `jot TEXT`,
`hang`, `pay N`, `linger`, `die`, `sulk`, `spawn`, `spend N`, `ask QUESTION`, several at once with `&`,
or anything else, which is the answer. It keeps no memory, so it answers the same after a crash, and
every line of the bill that occurs twice was asked twice.
"""

from agency.agent import LlmRequest, LlmResponse, Message, ToolCall, ToolResult, Usage
from tests.faults.app.agents import note


class FollowsTheTask:
    model_name = "scripted:follows-the-task"
    output_mode = "tool"

    def generate(self, request: LlmRequest) -> LlmResponse:
        said = [item for item in request.contents if isinstance(item, Message) and item.role == "user"]
        newest = max(place for place, item in enumerate(request.contents) if item in said)
        done = sum(isinstance(item, ToolResult) for item in request.contents[newest:])
        note(f"model {len(said)}.{done}")
        sections = said[0].content.split("|")
        if len(said) > len(sections):
            return self._answer(Message(role="assistant", content="I gave up."))
        steps: list[list[str]] = []
        for step in sections[len(said) - 1].split(";"):
            calls = step.split(" & ")
            steps += [calls] * len(calls)
        actions = [self._action(one.strip(), f"c{len(said)}-{done + n}") for n, one in enumerate(steps[done])]
        return self._answer(*actions)

    def _action(self, step: str, call_id: str) -> Message | ToolCall:
        verb, _, rest = step.partition(" ")
        if verb == "jot":
            return ToolCall(tool_call_id=call_id, name="jot", arguments={"text": rest})
        if verb in {"hang", "linger", "die", "sulk", "spawn"}:
            return ToolCall(tool_call_id=call_id, name=verb)
        if verb == "pay":
            return ToolCall(tool_call_id=call_id, name="pay", arguments={"amount": int(rest)})
        if verb == "spend":
            return ToolCall(tool_call_id=call_id, name="spend", arguments={"amount": int(rest)})
        if verb == "ask":
            question, _, choices = rest.partition(" / ")
            arguments = {"question": question} | ({"choices": choices.split(",")} if choices else {})
            return ToolCall(tool_call_id=call_id, name="ask_human", arguments=arguments)
        return Message(role="assistant", content=step)

    def _answer(self, *items: Message | ToolCall) -> LlmResponse:
        return LlmResponse(list(items), Usage(model_calls=1, input_tokens=10, output_tokens=5))


model = FollowsTheTask()
