"""The shapes of the API: what comes in, what goes out, and how rows become the latter."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agency.agent.events import Usage
from agency.agent.providers import resolve
from agency.api.body import storable
from agency.api.human_schemas import HumanRequestOut
from agency.api.wait_schemas import WaitOut
from agency.enums import EventKind, ExecutionStatus, LoopStatus, Verdict
from agency.models import ConfiguredAgent, Event, Execution, Iteration

MAX_BATCH = 1000


def only_storable(value: str) -> str:
    """Refuses text that no database can hold."""
    if not storable(value):
        raise ValueError("contains a NUL character or half of a surrogate pair")
    return value


def _from_outside(name: str) -> str:
    """A model that a client may choose: never code (`scripted:`) or a file (`local:/path`) of the server."""
    provider, _, model = name.partition(":")
    if name and not (provider in PROVIDERS and model):
        raise ValueError(f"write provider:model with one of {', '.join(PROVIDERS)}, or nothing")
    if provider == "local" and ("/" in model or "\\" in model):
        raise ValueError("names a file of the server; write local:default, or set AGENCY_MODEL there")
    return name


PROVIDERS = [name for name in resolve.PROVIDERS if name != "scripted"]
ModelName = Annotated[
    str,
    AfterValidator(_from_outside),
    Field(
        max_length=300,
        examples=["openai:gpt-5-mini"],
        json_schema_extra={"pattern": rf"^($|({'|'.join(PROVIDERS)}):.+)"},
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S"), AfterValidator(only_storable)]
Key = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(only_storable)]


class Incoming(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AgentOrder(Incoming):
    """A new agent: an agent class (`agent_key`) chosen and set. An empty `model` is the project's choice."""

    name: Name
    agent_key: Key
    model: ModelName = ""
    prompt_variables: dict[str, Any] = {}
    prompt_override: str | None = None


class AgentOut(BaseModel):
    id: UUID
    name: str
    agent_key: str
    model: str
    prompt_variables: dict[str, Any]
    prompt_override: str | None
    file_upload: bool
    created_at: datetime

    @classmethod
    def of(cls, row: ConfiguredAgent) -> "AgentOut":
        return cls.model_validate(row, from_attributes=True)


class AgentPage(BaseModel):
    items: list[AgentOut]
    next: str | None


class DefinitionOut(BaseModel):
    """An execution type: `input_schema` is the JSON Schema of `input`."""

    execution_key: str
    agent_key: str
    name: str
    description: str | None
    max_attempts: int
    input_schema: dict[str, Any]
    failure_codes: list[str]


class Order(Incoming):
    """One job: which agent does which execution type with which input."""

    agent: UUID
    execution_key: Key
    input: dict[str, Any] = {}


class BatchOrder(Incoming):
    """Many jobs of one type for one agent. All are accepted, or none."""

    agent: UUID
    execution_key: Key
    inputs: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_BATCH)


class ExecutionRow(BaseModel):
    """An execution as lists show it.

    It runs a definition (`execution_key`) or a `mission`. `iteration` counts committed iterations (attempts);
    `current_iteration` is the one that is worked on or, between two, the last one. `loop_status` and
    `max_iterations` are those of a loop. `trigger` says what dispatched a mission. `event_seq` is the number
    of the last event.
    """

    id: UUID
    execution_key: str | None
    mission: UUID | None
    mission_name: str | None
    agent: UUID
    agent_name: str
    batch: UUID | None
    status: ExecutionStatus
    loop_status: LoopStatus | None
    iteration: int
    current_iteration: int
    max_iterations: int | None
    next_run_at: datetime | None
    trigger: dict[str, Any] | None
    failure_code: str | None
    failure_summary: str | None
    cancel_requested: bool
    event_seq: int
    usage: Usage
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, row: Execution) -> "ExecutionRow":
        return cls(**_row_fields(row))


class AttemptOut(BaseModel):
    """One line of the ledger: what the validators said of the attempt. `fence` is its claim's number."""

    n: int
    verdict: Verdict
    summary: str
    feedback: str | None
    failure_code: str | None
    usage: Usage
    fence: int
    started_at: datetime
    finished_at: datetime

    @classmethod
    def of(cls, row: Iteration) -> "AttemptOut":
        return cls.model_validate(row, from_attributes=True)


class HeldOut(BaseModel):
    """Why no worker can run an execution just now, and since when: its code is not deployed."""

    reason: str
    since: datetime


class ExecutionOut(ExecutionRow):
    """An execution in full. `model` is what it was set to use, empty for the project's choice; `request` is
    what it wants of a person, if it waits for one; `wait` is what a mission waits for. `loop_decision` is the
    supervisor's last decision, `generation` counts extensions after an end, from 1.

    `held` is set while no worker knows its definition or how to read it; it goes on with one that does.
    """

    thread: UUID
    model: str
    input: dict[str, Any]
    output: dict[str, Any] | None
    idempotency_key: str | None
    deadline_at: datetime | None
    generation: int
    loop_decision: dict[str, Any] | None
    wait: WaitOut | None
    held: HeldOut | None
    config_hash: str
    attempts: list[AttemptOut]
    request: HumanRequestOut | None

    @classmethod
    def of(cls, row: Execution) -> "ExecutionOut":
        return cls(
            **_row_fields(row),
            thread=row.thread_id,
            model=(row.config.get("agent") or {}).get("model") or "",
            input=row.input,
            output=row.output,
            idempotency_key=row.idempotency_key,
            deadline_at=row.deadline_at,
            generation=row.generation,
            loop_decision=row.loop_decision,
            wait=WaitOut.of(row),
            held=None if row.is_terminal else row.metadata.get("held"),
            config_hash=row.config_hash,
            attempts=[AttemptOut.of(iteration) for iteration in row.iterations.order_by("n")],
            request=HumanRequestOut.open_of(row),
        )


def _row_fields(row: Execution) -> dict[str, Any]:
    is_open = row.iteration_fence is not None and not row.is_terminal
    return {
        "id": row.id,
        "execution_key": row.execution_key,
        "mission": row.mission_id,
        "mission_name": (row.config.get("mission") or {}).get("name"),
        "agent": row.agent_id,
        "agent_name": row.agent.name,
        "batch": row.batch_id,
        "status": row.status,
        "loop_status": row.loop_status,
        "iteration": row.iteration,
        "current_iteration": row.iteration + is_open,
        "max_iterations": row.max_iterations,
        "next_run_at": row.next_run_at,
        "trigger": row.metadata.get("trigger"),
        "failure_code": row.failure_code,
        "failure_summary": row.failure_summary,
        "event_seq": row.event_seq,
        "cancel_requested": row.cancel_requested_at is not None,
        "usage": row.usage,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
    }


class ExecutionPage(BaseModel):
    items: list[ExecutionRow]
    next: str | None


class BatchOut(BaseModel):
    """`executions` in the order of the inputs."""

    batch: UUID
    executions: list[ExecutionRow]


class EventOut(BaseModel):
    """One recorded fact. `kind` is `content` for what agent, model and tools said, else a lifecycle word."""

    seq: int
    id: UUID = Field(validation_alias="event_id")
    kind: EventKind
    iteration: int
    step: int
    author: str
    content: list[dict[str, Any]]
    data: dict[str, Any]
    usage: Usage | None
    error: dict[str, Any] | None
    call: dict[str, Any] | None
    timestamp: datetime

    @classmethod
    def of(cls, row: Event) -> "EventOut":
        return cls.model_validate(row, from_attributes=True)


class EventPage(BaseModel):
    """`after` is where to read on; `last_seq` the newest event; with `terminal` no more will come."""

    items: list[EventOut]
    after: int
    last_seq: int
    terminal: bool


class CancelOut(BaseModel):
    """`cancelled` at once, or the present status: a running execution stops within moments."""

    id: UUID
    status: ExecutionStatus
    cancel_requested: bool
