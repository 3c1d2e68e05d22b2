"""What is said in a run: content items and the events that record them. Pure data."""

import os
import random
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Deferred(BaseModel):
    # Built at the first use, whatever thread that is on: the import of the core should not wait for it.
    model_config = ConfigDict(defer_build=True)


class _Item(_Deferred):
    model_config = ConfigDict(extra="forbid")


class Message(_Item):
    """Text said by one side."""

    type: Literal["message"] = "message"
    role: Literal["system", "user", "assistant"]
    content: str


class ToolCall(_Item):
    """The model asks for a tool. `arguments` is always a JSON object; broken JSON is in `invalid`."""

    type: Literal["tool_call"] = "tool_call"
    tool_call_id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    invalid: str | None = None


class ToolResult(_Item):
    """What a tool call gave: JSON-able content, or an error text."""

    type: Literal["tool_result"] = "tool_result"
    tool_call_id: str
    name: str
    status: Literal["success", "error"]
    content: Any = None


class ProviderPart(_Item):
    """What a provider wants back verbatim (thinking signatures and the like)."""

    type: Literal["provider"] = "provider"
    provider: str
    data: dict[str, Any]


class FilePart(_Item):
    """An image or document. Reserved: stored rows are hard to change later."""

    type: Literal["file"] = "file"
    media_type: str
    uri: str
    name: str | None = None


_ITEMS = frozenset[type]({Message, ToolCall, ToolResult, ProviderPart, FilePart})
ContentItem = Annotated[
    Message | ToolCall | ToolResult | ProviderPart | FilePart, Field(discriminator="type")
]


class Usage(_Deferred):
    """What model calls cost. Tokens are counts; `cost` is US dollars where the price is known."""

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            tool_calls=self.tool_calls + other.tool_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost=sum(known) if known else None,
        )

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


SAID_BY = "said_by"
"""Where the `call` of a user event names who else it is from, such as a supervisor."""
_ASIDE = frozenset({"within", "summary_of", "beside"})


class EventError(_Deferred):
    """An error as recorded: `code` is a short word, `message` is safe to show."""

    code: str
    message: str


def new_id() -> str:
    """A random UUID as text, at a fifth of what `uuid.uuid4` costs: two are made in each step.

    It asks the system for no randomness, since that would hand the interpreter to another thread.
    """
    return _UUID_4 % (_bits(32), _bits(16), _bits(12) | 0x4000, _bits(14) | 0x8000, _bits(48))


_random = random.Random()  # not the module's own, which programs seed
_bits = _random.getrandbits
_UUID_4 = "%08x-%04x-%x-%x-%012x"
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def _now() -> datetime:
    return datetime.now(UTC)


class Event(_Deferred):
    """One recorded fact: a user input, a whole model response, the tool results of a step, an error."""

    id: str = Field(default_factory=new_id)
    execution_id: str
    timestamp: datetime = Field(default_factory=_now)
    author: str
    content: list[ContentItem] = Field(default_factory=list[ContentItem])
    step: int = 0
    usage: Usage | None = None
    error: EventError | None = None
    call: dict[str, Any] | None = None
    """Of a model call: model, finish_reason, duration (s), request (selection and digest).

    Of a summary, `summary_of`: the ids of the first and the last event that it stands for. Of a model that
    was asked beside the agent, `beside`: who asked it. `masked`: the ids of the event's tool calls whose
    arguments held a secret that was taken out when the event was stored.
    """

    @property
    def within(self) -> list[str]:
        """The tool calls, from the outermost in, inside whose runs of other agents this happened."""
        return self.call.get("within", []) if self.call else []

    @property
    def aside(self) -> bool:
        """Whether this is no part of the conversation.

        That is a summary of it, a run inside a call, or what another model was asked beside it.
        """
        return self.call is not None and not _ASIDE.isdisjoint(self.call)

    @property
    def text(self) -> str:
        """The texts of the event's messages, joined by newlines."""
        return "\n".join(item.content for item in self.content if item.type == "message")

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [item for item in self.content if item.type == "tool_call"]

    @property
    def tool_results(self) -> list[ToolResult]:
        return [item for item in self.content if item.type == "tool_result"]


def recorded(
    execution_id: str,
    author: str,
    content: list[ContentItem],
    step: int,
    usage: Usage | None = None,
    error: EventError | None = None,
    call: dict[str, Any] | None = None,
) -> Event:
    """A new event of what is said now, at half of what `Event(...)` costs: two are made in each step.

    Values of our own types were checked when they were made; only what is of another type is checked.
    """
    values: dict[str, Any] = {
        "id": new_id(),
        "execution_id": execution_id,
        "timestamp": _now(),
        "author": author,
        "content": content,
        "step": step,
        "usage": usage,
        "error": error,
        "call": call,
    }
    if type(usage) not in _USED:
        return Event(**values)
    for item in content:
        if type(item) not in _ITEMS:
            return Event(**values)
    event = Event.__new__(Event)
    _set(event, "__dict__", values)
    _set(event, "__pydantic_fields_set__", _FIELDS)
    _set(event, "__pydantic_extra__", None)
    _set(event, "__pydantic_private__", None)
    return event


_set = object.__setattr__
_FIELDS = set(Event.__pydantic_fields__)
_USED = frozenset[type]({Usage, type(None)})
