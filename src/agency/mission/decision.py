"""The supervisor's typed decision on a loop: its fields, and which of them each status needs and forbids."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AliasChoices,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from agency.agent.llm import LlmClient, LlmRequest
from agency.agent.text import cut
from agency.enums import DecisionStatus
from agency.mission.instruction import is_no_question, is_placeholder
from agency.mission.prompt import Matter, supervisor_request

TEXT_LIMIT = 4_000
LONGEST_WAIT = 366 * 86_400
LONGEST_SIGNAL = 100
_OWN = {
    DecisionStatus.CONTINUE: "next_input",
    DecisionStatus.WAIT: "wait",
    DecisionStatus.BLOCKED: "required_input",
}
_EMPTY: tuple[Any, ...] = ("", None, [], {})


def is_signal_name(text: str) -> bool:
    """Whether a signal can have this name, which is part of an address."""
    return 0 < len(text) <= LONGEST_SIGNAL and text.isprintable() and "/" not in text


class _Form(BaseModel):
    """A form that a model fills in: what it leaves blank counts as left out."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data)
        stripped = {key: item.strip() if isinstance(item, str) else item for key, item in given.items()}
        return {key: item for key, item in stripped.items() if item not in _EMPTY}


class Wait(_Form):
    """What a mission waits for: exactly one of a time span, a moment, a signal and a watch."""

    seconds: Annotated[int, Field(ge=1, le=LONGEST_WAIT)] | None = None
    until: AwareDatetime | None = None
    signal: Annotated[str, Field(max_length=LONGEST_SIGNAL)] | None = None
    watch: Annotated[str, Field(max_length=100)] | None = None
    what_for: str = Field(default="", description="What is expected to have happened by then.")

    @field_validator("signal")
    @classmethod
    def _can_be_sent(cls, name: str | None) -> str | None:
        if name is not None and not is_signal_name(name):
            raise ValueError("the name of a signal is printable text without '/'")
        return name

    @model_validator(mode="after")
    def _one_of(self) -> "Wait":
        given = [name for name in ("seconds", "until", "signal", "watch") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"wait needs exactly one of seconds, until, signal, watch; got {given or 'none'}"
            )
        return self


class RequiredInput(_Form):
    """What a person is asked."""

    question: str = Field(min_length=1, max_length=TEXT_LIMIT)
    kind: Literal["text", "choice", "confirmation"] = "text"
    choices: list[str] = Field(default_factory=list[str])

    @field_validator("question")
    @classmethod
    def _asks(cls, question: str) -> str:
        if is_no_question(question):
            raise ValueError(
                f"{question!r} asks nothing; write the whole question that a person is to answer"
            )
        return question

    @model_validator(mode="after")
    def _with_choices(self) -> "RequiredInput":
        if self.kind == "choice" and len(self.choices) < 2:
            raise ValueError("required_input of the kind 'choice' needs at least two choices")
        return self


class LoopDecision(_Form):
    """How a mission goes on after an iteration."""

    reason: str = Field(min_length=1, description="Why, in one or two sentences, from what was done.")
    status: DecisionStatus
    summary: str = Field(min_length=1, description="What has been achieved so far, in one or two sentences.")
    evidence: str | None = Field(default=None, description="complete: the lines that prove the objective.")
    next_input: str | None = Field(
        default=None,
        validation_alias=AliasChoices("next_input", "follow_up"),
        description="continue only: one concrete instruction for the next round.",
    )
    wait: Wait | None = Field(default=None, description="wait only: for what, and how long.")
    required_input: RequiredInput | None = Field(default=None, description="blocked only: what to ask.")

    @classmethod
    def settled(cls, supervisor: LlmClient, matter: Matter) -> "type[LoopDecision]":
        """The form to ask for, after whatever `supervisor` is asked before: here itself."""
        return cls

    @classmethod
    def request(cls, matter: Matter) -> LlmRequest:
        """How this form is asked for."""
        return supervisor_request(matter)

    def confirmed(self, supervisor: LlmClient, matter: Matter) -> "LoopDecision":
        """The decision after whatever else this form asks `supervisor` for: here nothing."""
        return self

    @property
    def follow_up(self) -> str | None:
        """Another name of `next_input`."""
        return self.next_input

    @model_validator(mode="before")
    @classmethod
    def _without_leftovers(cls, data: Any) -> Any:
        """A placeholder in a field that the status does not use means that it was left out."""
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data)
        if given.get("status") == DecisionStatus.CONTINUE:
            return given
        return {key: item for key, item in given.items() if not _is_leftover(key, item)}

    @model_validator(mode="after")
    def _agrees(self) -> "LoopDecision":
        own = _OWN.get(self.status)
        for name in _OWN.values():
            given = getattr(self, name) is not None
            if given and name != own:
                raise ValueError(f"status {self.status.value!r} must not have {name}")
            if not given and name == own:
                raise ValueError(f"status {self.status.value!r} needs {name}")
        if self.next_input is not None and is_placeholder(self.next_input):
            raise ValueError(
                f"next_input {self.next_input!r} is no instruction; say concretely what to do next"
            )
        self.reason, self.summary = cut(self.reason, TEXT_LIMIT), cut(self.summary, TEXT_LIMIT)
        return self

    def ends_at(self, now: datetime) -> datetime | None:
        """When the wait is over by time, or `None` if something else ends it."""
        if self.wait is None or (self.wait.seconds is None and self.wait.until is None):
            return None
        return self.wait.until or now + timedelta(seconds=self.wait.seconds or 0)


def _is_leftover(key: str, item: Any) -> bool:
    return key in {"next_input", "follow_up", "evidence"} and isinstance(item, str) and is_placeholder(item)
