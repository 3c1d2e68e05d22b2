"""Puts a run together from its row: the only place that holds a configured agent and a thinking one.

What was chosen at submission counts (the snapshot); how the agent class and definition are written
counts as it is now.
"""

import contextlib
import copy
import functools
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.db import connections
from django.utils.module_loading import import_string
from pydantic import TypeAdapter

from agency.agent.agent import Agent
from agency.agent.agent_tool import AgentTool
from agency.agent.confirmation import Confirmation
from agency.agent.context import ExecutionContext
from agency.agent.journal import RunScope
from agency.agent.limits import Limits
from agency.agent.llm import LlmClient, OutputSchema
from agency.agent.providers.choice import provider_of
from agency.agent.sources import split
from agency.agent.tools import Tool
from agency.agent.toolset import resolve_tools
from agency.errors import ConfigurationError, NotDeployed, UnknownDefinition
from agency.execution import answering, past, registry, snapshot
from agency.execution.claims import Claim, database
from agency.execution.conversation import Conversation
from agency.execution.definition import BaseAgenticExecutionDefinition
from agency.execution.record import JOURNAL_VERSION, knows_journal
from agency.execution.scratchpad import ToolScratchpad
from agency.execution.store import HELD
from agency.human import decisions
from agency.models import Execution, Iteration
from agency.runtime import conf
from agency.runtime.gated_client import GatedClient
from agency.runtime.journal import DbJournal
from agency.runtime.watch import Watch

_clients: list[LlmClient] = []


@dataclass(slots=True)
class Run:
    """Everything a claimed run needs. `was_held` until now: no worker knew it."""

    definition: BaseAgenticExecutionDefinition
    input_data: Any
    conversation: Conversation
    journal: DbJournal
    confirmations: list[Confirmation]
    was_held: bool = False


@contextlib.contextmanager
def use_client(client: LlmClient) -> Iterator[LlmClient]:
    """Let every run in this process ask `client` while the block lasts, whatever model it names."""
    _clients.append(client)
    try:
        yield client
    finally:
        _clients.remove(client)


@dataclass(slots=True)
class MissionRun:
    """Everything one iteration of a mission needs."""

    execution: Execution
    agent: Agent
    context: ExecutionContext
    journal: DbJournal
    confirmations: list[Confirmation]
    clients: "Clients"
    recent: list[Iteration]
    was_held: bool = False


def wire(claim: Claim, watch: Watch) -> Run:
    """The run of a claimed execution, with the history, feedback and journal of what was done before."""
    ground = _Ground(claim, watch)
    execution, last = ground.execution, ground.last
    made = _deployed(execution)()
    input_data = made.INPUT_TYPE.model_validate(execution.input)
    conversation = Conversation(
        _agent(made, execution.config["agent"], ground.scope, ground.clients),
        context=ground.context,
        scratchpad=ground.scratchpad,
        execution_input=input_data,
        attempt=claim.iteration,
        feedback=last.feedback if last is not None else None,
        previous_opening=ground.state.get("opening"),
        ledger=ground.journal,
        client_for=ground.clients.named,
        confirmations=ground.decided,
    )
    return Run(
        made, input_data, conversation, ground.journal, ground.decided, was_held=HELD in execution.metadata
    )


def wire_mission(claim: Claim, watch: Watch) -> MissionRun:
    """The next iteration of a claimed mission, with the thread's history and this iteration's journal."""
    ground = _Ground(claim, watch)
    execution = ground.execution
    _check_version(execution)
    _check_agent(execution)
    agent = _agent(None, execution.config["agent"], ground.scope, ground.clients)
    agent.scope.resources[ToolScratchpad] = ground.scratchpad
    return MissionRun(
        execution,
        agent,
        ground.context,
        ground.journal,
        ground.decided,
        ground.clients,
        ground.recent,
        was_held=HELD in execution.metadata,
    )


class _Ground:
    """What every run stands on: its row, what was committed, the journal since then, people's decisions."""

    def __init__(self, claim: Claim, watch: Watch) -> None:
        read = past.read(claim.execution_id)
        execution = read.execution
        self.execution = execution
        self.clients = Clients(
            execution.provider, is_gated=claim.is_gated and not connections[database()].in_atomic_block
        )
        self.recent = read.recent
        self.last = read.last
        self.state: dict[str, Any] = self.last.state if self.last is not None else {}
        self.scratchpad = ToolScratchpad()
        self.context = _context(execution, self.last.event_seq if self.last is not None else 0, self.state)
        journal = DbJournal(claim, self.scratchpad, self.context, read.stored)
        self.journal = journal
        allowed = answering.merged(read.allowed, execution.metadata)
        self.scope = RunScope(
            journal=journal,
            checkpoint=watch.checkpoint,
            is_cancelled=watch.is_aborted,
            deadline=claim.deadline,
            payloads=journal.payloads,
            # It may be revoked while the run goes on; a tool is only allowed while nothing runs.
            is_allowed=lambda tool: bool(allowed.get(tool)) and journal.is_allowed(tool),
        )
        decided = [] if claim.is_fresh else decisions.decisions_for(execution.pk, claim.iteration)
        # What was begun while it was allowed is not asked about when that is revoked.
        known = {one.tool_call_id for one in decided}
        decided += [
            Confirmation(call_id, "approve") for call_id in journal.begun(allowed) if call_id not in known
        ]
        self.decided = decided


def _deployed(execution: Execution) -> type[BaseAgenticExecutionDefinition]:
    """The definition of an execution that this code can run; `NotDeployed` says what it lacks."""
    _check_version(execution)
    try:
        made = registry.get_definition(execution.execution_key or "")
    except UnknownDefinition as error:
        raise NotDeployed(str(error)) from error
    _check_agent(execution)
    return made


def _check_version(execution: Execution) -> None:
    version = execution.config.get("version")
    if version != snapshot.VERSION:
        raise NotDeployed(
            f"it was submitted by another version of agency: its snapshot has version {version!r}, "
            f"this one reads {snapshot.VERSION}"
        )
    if not knows_journal(execution.journal_version):
        raise NotDeployed(
            f"it was run by a newer version of agency: its journal has version {execution.journal_version}, "
            f"this one reads up to {JOURNAL_VERSION}"
        )


def _check_agent(execution: Execution) -> None:
    try:
        registry.get_agent_class(execution.config["agent"]["agent_key"])
    except ConfigurationError as error:
        raise NotDeployed(str(error)) from error


def client_for(model: str) -> LlmClient:
    """The client for a `"provider:model"`; an empty name means the project's choice."""
    if _clients:
        return _clients[-1]
    factory = conf.current().LLM_CLIENT_FACTORY
    if factory is not None:
        return import_string(factory)(model)
    # The providers load slowly, and a process that only waits or serves needs none.
    from agency.agent.providers import choose_model, resolve_model

    return resolve_model(model or choose_model(os.environ).name)


@dataclass(frozen=True, slots=True)
class Clients:
    """Gives a run its clients, behind their providers' gates: its own agent's, and those that tools name."""

    provider: str
    is_gated: bool

    def own(self, model: str) -> LlmClient:
        return self._behind(client_for(model), self.provider or provider_of(model))

    def named(self, model: LlmClient | str) -> LlmClient:
        """A client that somebody made is taken as it is."""
        return self._behind(client_for(model), provider_of(model)) if isinstance(model, str) else model

    def _behind(self, client: LlmClient, provider: str) -> LlmClient:
        return GatedClient(client, provider) if self.is_gated else client


def _agent(
    made: BaseAgenticExecutionDefinition | None, chosen: dict[str, Any], scope: RunScope, clients: Clients
) -> Agent:
    """The thinking agent of a definition's run, or (without one) of a mission's."""
    cls = registry.get_agent_class(chosen["agent_key"])
    prompt = chosen["prompt_override"] if made is None or made.SYSTEM_PROMPT is None else made.SYSTEM_PROMPT
    limits = dict(chosen["limits"])
    limits.pop("concurrency", None)  # the claim's, not the turn's
    steps = limits.pop("max_steps", None) or cls.MAX_STEPS
    client = clients.own(chosen["model"] or cls.DEFAULT_MODEL or "")
    declared, sources = split(cls.TOOLS if made is None or made.TOOLS is None else made.TOOLS)
    tools = resolve_tools(declared, client, settings=chosen["tool_settings"], client_for=clients.named)
    return cls.build(
        client,
        tools=[*(_tidy(tool) for tool in tools), *sources],
        instructions=prompt,
        variables=chosen["prompt_variables"],
        max_steps=steps,
        limits=_limits((made and made.LIMITS) or cls.LIMITS, limits),
        scope=scope,
        model_retries=0,
        answer_schema=None if made is None else _answer_schema(made.OUTPUT_TYPE),
    )


def _answer_schema(output_type: Any) -> OutputSchema | None:
    """What a provider that can should hold the answer to; the definition's validators still judge it."""
    if output_type is None:
        return None
    if isinstance(output_type, dict):
        return OutputSchema(output_type.get("title", "Answer"), output_type, output_type.get("description"))
    schema = TypeAdapter(output_type).json_schema()
    # Providers take only an object; another type is asked for in words and judged by the validators.
    is_object = schema.get("type") == "object"
    return (
        OutputSchema(schema.get("title", "Answer"), schema, schema.get("description")) if is_object else None
    )


def _tidy(tool: Tool) -> Tool:
    """The tool, leaving no database connection behind on a thread that was made for one call."""
    function, home = tool.function, threading.get_ident()

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            if threading.get_ident() != home:
                connections.close_all()

    tidy = copy.copy(tool)
    tidy.function = call
    if isinstance(tidy, AgentTool):
        tidy.agent = tidy.agent.with_tools([_tidy(one) for one in tidy.agent.tools])
    return tidy


def _limits(declared: Limits | None, chosen: dict[str, Any]) -> Limits | None:
    """The definition's limits, else the agent class's, with what the row sets on top."""
    return replace(declared or Limits(), **chosen) if chosen else declared


def _context(execution: Execution, until: int, state: dict[str, Any]) -> ExecutionContext:
    """The context as it was at the last committed attempt; what came after is in the journal."""
    return ExecutionContext(
        execution_id=str(execution.pk),
        events=past.conversation(execution, until),
        current_step=state.get("current_step", 0),
        state=dict(state.get("context_state", {})),
    )
