"""Requests to and answers from a language model, and the one method a client must have.

Knows no vendor: providers translate `LlmRequest` and raise the `ModelError` family of `agency.errors`.
"""

from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from agency.agent.events import ContentItem, ToolCall, Usage
from agency.errors import ModelOutputInvalid

T = TypeVar("T", bound=BaseModel)
FinishReason = Literal["stop", "tool_calls", "length", "refusal", "error"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """What the final answer must be: a JSON Schema with a name and description for providers."""

    name: str
    schema: dict[str, Any]
    description: str | None = None


@dataclass(slots=True)
class LlmRequest:
    """One call: instructions, the selected history, the tools on offer, the wanted output shape."""

    model: str | None = None
    instructions: list[str] = field(default_factory=list[str])
    contents: list[ContentItem] = field(default_factory=list[ContentItem])
    tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    tool_choice: Literal["auto", "none", "required"] = "auto"
    output_schema: OutputSchema | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Provider settings such as `max_tokens`, `temperature`."""
    selection: dict[str, Any] | None = None
    """What the request builder chose, as JSON for the record of the call. Nothing that a model is sent."""
    kept: dict[Any, Any] = field(default_factory=dict[Any, Any], repr=False, compare=False)
    """What clients keep of this history until its next request, by keys of their own."""


@dataclass(slots=True)
class LlmResponse:
    """A whole answer. `LlmResponse(content=[...])` is enough."""

    content: list[ContentItem]
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    model: str | None = None

    @property
    def text(self) -> str:
        return "\n".join(item.content for item in self.content if item.type == "message")

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [item for item in self.content if item.type == "tool_call"]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer that is still coming: a hint for who watches, never a record.

    `tool_call` pieces carry the call's id and name, and `text` a piece of its arguments as JSON.
    `restart` says that the pieces so far are void: the answer broke off and is asked for anew. A client says
    `waiting` now and then while it waits for its turn at the model, and an empty `text` where something
    came that cannot be shown yet; hooks see neither.
    """

    kind: Literal["text", "thinking", "tool_call", "restart", "waiting"]
    text: str = ""
    tool_call_id: str | None = None
    name: str | None = None


@runtime_checkable
class LlmClient(Protocol):
    """Anything that answers a request; an object with only `generate` is a client.

    Optional: `output_mode: "native" | "tool"`: whether the provider constrains the final answer to
    `request.output_schema` itself (default "tool": the agent offers a `final_answer` tool);
    `stream(request) -> Iterator[Delta | LlmResponse]`: the answer in pieces, and at the end as a whole. What
    it makes of a history it may keep in `request.kept`, and so be spared to make it anew at each step;
    `takes_probes: bool`: whether its state can be read (`providers.local_probe`).
    """

    def generate(self, request: LlmRequest) -> LlmResponse: ...


class StructuredClient(Generic[T]):
    """A client whose answers are validated instances of `schema`."""

    def __init__(self, client: LlmClient, schema: type[T]) -> None:
        self.client = client
        self.schema = schema

    def generate(self, request: LlmRequest) -> T:
        """Ask once; raise `ModelOutputInvalid` (with the raw text) if the answer does not validate."""
        request.output_schema = output_schema(self.schema)
        request.tools = []
        raw = self.client.generate(request).text
        try:
            return self.schema.model_validate_json(strip_fence(raw))
        except ValidationError as exc:
            raise ModelOutputInvalid(f"not a valid {self.schema.__name__}: {exc}", raw) from exc


def with_structured_output(client: LlmClient, schema: type[T]) -> StructuredClient[T]:
    """Wrap any client so that `generate` returns an instance of the Pydantic model `schema`."""
    return StructuredClient(client, schema)


_made: WeakKeyDictionary[type[BaseModel], bytes] = WeakKeyDictionary()


def output_schema(schema: type[BaseModel]) -> OutputSchema:
    """The schema of a Pydantic model: made once, which takes milliseconds, and a new copy for each request.

    To read JSON is the fastest way to copy it, and JSON is what providers are sent.
    """
    made = _made.get(schema)
    if made is None:
        made = _made[schema] = to_json(schema.model_json_schema())
    return OutputSchema(schema.__name__, from_json(made), schema.__doc__)


def strip_fence(text: str) -> str:
    """The inside of a lone Markdown code fence, or the text as it is."""
    body = text.strip()
    if not (body.startswith("```") and body.endswith("```") and "\n" in body):
        return text
    return body.split("\n", 1)[1].rsplit("```", 1)[0]
