"""The shapes of missions and of the iterations of their executions: what comes in, what goes out."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from agency.agent.events import Usage
from agency.api.schemas import Incoming, ModelName, Name, only_storable
from agency.enums import Verdict
from agency.mission.fields import LONGEST_TEXT, MOST_CHECKS
from agency.models import Iteration, Mission
from agency.models.mission import LONGEST_DELAY, MOST_ITERATIONS


def without_defaults(schema: dict[str, Any]) -> None:
    """What may be left out of a change has no default: left out, it stays as it is."""
    for field in schema["properties"].values():
        field.pop("default", None)


Text = Annotated[
    str, Field(min_length=1, max_length=LONGEST_TEXT, pattern=r"\S"), AfterValidator(only_storable)
]
LoopPrompt = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(only_storable)]
Iterations = Annotated[int, Field(strict=True, ge=1, le=MOST_ITERATIONS)]
Delay = Annotated[int, Field(strict=True, ge=0, le=LONGEST_DELAY)]
Checks = Annotated[list[Name], Field(max_length=MOST_CHECKS)]


def _derived(value: Any) -> None:
    raise ValueError("follows from loop_prompt: leave this out; a text there makes a loop, null is one-shot")


Derived = Annotated[SkipJsonSchema[None], BeforeValidator(_derived), Field(exclude=True)]
"""What people may expect to set, but is read only: not in the schema, and refused with the reason."""


class MissionOrder(Incoming):
    """A new mission. With a `loop_prompt` it is a loop that a supervisor judges after each iteration.

    In `loop_prompt`, `{iteration}`, `{max_iterations}`, `{remaining_iterations}`, `{mission_name}` and
    `{last_summary}` are filled in; other braces stay as they are. `supervisor_model` empty means the agent's
    own. `completion_checks` name registered checks that must pass before the mission is complete. `limits`
    may hold `tokens`, `cost` (US dollars), `seconds`, `iteration_seconds` and `failed_turns`.
    """

    agent: UUID
    name: Name
    prompt: Text
    loop_prompt: LoopPrompt | None = None
    max_iterations: Iterations = 10
    loop_delay_seconds: Delay = 0
    supervisor_model: ModelName = ""
    completion_checks: Checks = []
    limits: dict[str, Any] = {}
    mode: Derived = None
    is_loop: Derived = None


_UNSET: Any = None


class MissionChange(Incoming):
    """Fields to change; what is left out stays. `loop_prompt` null or blank makes the mission one-shot.

    Later dispatches take the change; executions that are there go on as they were dispatched.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra=without_defaults)

    agent: UUID = _UNSET
    name: Name = _UNSET
    prompt: Text = _UNSET
    loop_prompt: LoopPrompt | None = _UNSET
    max_iterations: Iterations = _UNSET
    loop_delay_seconds: Delay = _UNSET
    supervisor_model: ModelName = _UNSET
    completion_checks: Checks = _UNSET
    limits: dict[str, Any] = _UNSET
    mode: Derived = None
    is_loop: Derived = None


def _held(said: Any) -> Any:
    """The tools of which it holds that they ask nobody; what was taken back is none."""
    return sorted(tool for tool, holds in said.items() if holds) if isinstance(said, dict) else said


class MissionOut(BaseModel):
    """A mission. `is_loop` follows from `loop_prompt`; one that was removed has `archived_at`."""

    id: UUID
    name: str
    agent: UUID = Field(validation_alias="agent_id")
    prompt: str
    loop_prompt: str | None
    is_loop: bool
    max_iterations: int
    loop_delay_seconds: int
    supervisor_model: str
    completion_checks: list[str]
    limits: dict[str, Any]
    always_allow: Annotated[list[str], BeforeValidator(_held)]
    archived_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: Mission) -> "MissionOut":
        return cls.model_validate(row, from_attributes=True)


class MissionPage(BaseModel):
    items: list[MissionOut]
    next: str | None


class IterationOut(BaseModel):
    """One line of the ledger: what the iteration began with, what it brought, and how it was judged.

    `verdict` is the supervisor's decision (of a definition's attempt, the validators'), with its `summary`,
    `reason` and `evidence`; `next_input` is what the next one was told, `wait` and `required_input` what the
    mission waited for or asked a person.
    """

    n: int
    verdict: Verdict
    input: str
    answer: str
    summary: str
    reason: str | None
    next_input: str | None
    evidence: str | None
    wait: dict[str, Any] | None
    required_input: dict[str, Any] | None
    failure_code: str | None
    usage: Usage
    started_at: datetime
    finished_at: datetime

    @classmethod
    def of(cls, row: Iteration) -> "IterationOut":
        decided: dict[str, Any] = row.decision or {}
        named = ("n", "verdict", "summary", "failure_code", "usage", "started_at", "finished_at")
        return cls(
            **{name: getattr(row, name) for name in named},
            **{name: decided.get(name) for name in ("reason", "evidence", "wait", "required_input")},
            input=row.state.get("opening", ""),
            answer=row.state.get("answer", ""),
            next_input=row.feedback,
        )


class IterationPage(BaseModel):
    """`after` is where to read on; `iteration` counts those that are committed."""

    items: list[IterationOut]
    after: int
    iteration: int


class ExtendOrder(Incoming):
    """How many iterations more. With the `generation` that was read, the same wish is granted once."""

    iterations: Annotated[int, Field(strict=True, ge=1, le=100)]
    generation: Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)] | None = None
