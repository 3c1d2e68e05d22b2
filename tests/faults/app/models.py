"""A language model that follows the task's own script and writes each request on the bill.

The task is one section an attempt, parted by `|`; a section is steps, parted by `;`: `jot TEXT`,
`hang`, `pay N`, `linger`, `die`, `sulk`, or anything else, which is the answer. It keeps no memory, so
it answers the same after a crash, and every line of the bill that occurs twice was asked twice.
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
        step = sections[len(said) - 1].split(";")[done].strip()
        return self._answer(self._action(step, f"c{len(said)}-{done}"))

    def _action(self, step: str, call_id: str) -> Message | ToolCall:
        verb, _, rest = step.partition(" ")
        if verb == "jot":
            return ToolCall(tool_call_id=call_id, name="jot", arguments={"text": rest})
        if verb in {"hang", "linger", "die", "sulk"}:
            return ToolCall(tool_call_id=call_id, name=verb)
        if verb == "pay":
            return ToolCall(tool_call_id=call_id, name="pay", arguments={"amount": int(rest)})
        return Message(role="assistant", content=step)

    def _answer(self, item: Message | ToolCall) -> LlmResponse:
        return LlmResponse([item], Usage(model_calls=1, input_tokens=10, output_tokens=5))


model = FollowsTheTask()
