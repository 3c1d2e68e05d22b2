"""The agent classes and definitions that the project has, by their keys, and what is wrong with the others.

A faulty class is left out and becomes a problem; it never keeps the others from working.
"""

import contextlib
import copy
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agency.agent.declared import BaseAgent
from agency.errors import ConfigurationError, UnknownDefinition
from agency.execution import discovery
from agency.execution.declaration import Fault, agent_faults, definition_faults
from agency.execution.definition import BaseAgenticExecutionDefinition
from agency.execution.judge import JudgeValidator

Definition = type[BaseAgenticExecutionDefinition]
AgentClass = type[BaseAgent]

IMPORT_FAILED = "agency.E001"
FAULTY_CLASS = "agency.E002"
TAKEN_KEY = "agency.E003"
TAKEN_NAME = "agency.E004"
UNKNOWN_AGENT = "agency.E005"
JUDGE_IS_WORKER = "agency.W001"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a class or module; `message` names it and its file, `hint` says the fix."""

    message: str
    hint: str
    obj: str
    id: str

    @property
    def is_warning(self) -> bool:
        """Whether the class works all the same."""
        return self.id.startswith("agency.W")


@dataclass
class _State:
    agents: dict[str, AgentClass] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


_state = _State()


def get_definition(key: str) -> Definition:
    """The definition with this `EXECUTION_KEY`; `UnknownDefinition` says which there are."""
    found = _state.definitions.get(key)
    if found is None:
        known = ", ".join(sorted(_state.definitions)) or "none"
        message = f"no definition is registered as {key!r}; known: {known}"
        raise UnknownDefinition(message, [{"path": "execution_key", "message": message}])
    return found


def resolve(definition: str | Definition) -> Definition:
    """The registered definition that a key or class names; a class that is not registered cannot run."""
    if isinstance(definition, str):
        return get_definition(definition)
    found = get_definition(getattr(definition, "EXECUTION_KEY", definition.__name__))
    if found is not definition:
        raise ConfigurationError(
            f"{path_of(definition)} is not registered; {found.EXECUTION_KEY!r} is {where(found)}. "
            "Put it into the executions.py of an installed app"
        )
    return found


def get_agent_class(key: str) -> AgentClass:
    """The agent class with this `AGENT_KEY`; `ConfigurationError` says which there are."""
    found = _state.agents.get(key)
    if found is None:
        raise ConfigurationError(
            f"no agent class is registered as {key!r}; known: {', '.join(sorted(_state.agents)) or 'none'}"
        )
    return found


def agent_classes() -> dict[str, AgentClass]:
    """Every registered agent class by its key."""
    return dict(_state.agents)


def all_definitions() -> list[Definition]:
    """Every registered definition, by name."""
    return sorted(_state.definitions.values(), key=lambda cls: (cls.NAME, cls.EXECUTION_KEY))


def definitions_for(agent_key: str) -> list[Definition]:
    """The definitions that an agent of this class can be asked to run, by name."""
    return [cls for cls in all_definitions() if agent_key == cls.AGENT_KEY]


def problems() -> list[Problem]:
    """What the last discovery found wrong."""
    return list(_state.problems)


def autodiscover() -> None:
    """Fill the registry anew from the installed apps' `agents` and `executions` and from entry points."""
    global _state
    found = discovery.discover()
    state = _State()
    state.problems += [
        Problem(failure.message, failure.hint, failure.source, IMPORT_FAILED) for failure in found.failures
    ]
    _add(state, found.classes)
    _state = state


def register(*classes: AgentClass | Definition) -> None:
    """Add classes by hand, as a test does; `ConfigurationError` names the first that is faulty."""
    before = len(_state.problems)
    _add(_state, classes)
    faulty = [problem for problem in _state.problems[before:] if not problem.is_warning]
    if faulty:
        del _state.problems[before:]
        raise ConfigurationError(f"{faulty[0].message}. {faulty[0].hint}")


@contextlib.contextmanager
def isolated(*, empty: bool = False) -> Iterator[None]:
    """Undo at the end what the block does to the registry, which starts as it is, or `empty`. For tests."""
    global _state
    kept = _state
    _state = _State() if empty else copy.deepcopy(kept)
    try:
        yield
    finally:
        _state = kept


def _add(state: _State, classes: Iterable[Any]) -> None:
    """Agents first: a definition is only good with its agent."""
    chosen = list(classes)
    for cls in chosen:
        if issubclass(cls, BaseAgent):
            _add_agent(state, cls)
    for cls in chosen:
        if issubclass(cls, BaseAgenticExecutionDefinition):
            _add_definition(state, cls)


def _add_agent(state: _State, cls: AgentClass) -> None:
    if _sound(state, cls, agent_faults(cls)) and _free(state, cls, "AGENT_KEY", state.agents):
        state.agents[cls.AGENT_KEY] = cls


def _add_definition(state: _State, cls: Definition) -> None:
    if not _sound(state, cls, definition_faults(cls)):
        return
    if cls.AGENT_KEY not in state.agents:
        known = ", ".join(sorted(state.agents)) or "none"
        _report(
            state, cls, UNKNOWN_AGENT,
            Fault(f"AGENT_KEY {cls.AGENT_KEY!r} is no registered agent class", f"Use one of: {known}."),
        )  # fmt: skip
    elif _free(state, cls, "EXECUTION_KEY", state.definitions):
        state.definitions[cls.EXECUTION_KEY] = cls
        _warn_of_judge(state, cls)


def _sound(state: _State, cls: type, faults: list[Fault]) -> bool:
    for fault in faults:
        _report(state, cls, FAULTY_CLASS, fault)
    return not faults


def _free(state: _State, cls: Any, key_name: str, taken: dict[str, Any]) -> bool:
    """Whether key and name belong to no other class; the one that came first keeps them."""
    key = getattr(cls, key_name)
    other = taken.get(key)
    if other is cls:
        return False
    if other is not None:
        fault = Fault(
            f"{key_name} {key!r} is taken by {where(other)}", f"Give one of them another {key_name}."
        )
        _report(state, cls, TAKEN_KEY, fault)
        return False
    namesake = next((one for one in taken.values() if one.NAME == cls.NAME), None)
    if namesake is not None:
        fault = Fault(f"NAME {cls.NAME!r} is taken by {where(namesake)}", "Give one of them another NAME.")
        _report(state, cls, TAKEN_NAME, fault)
        return False
    return True


def _warn_of_judge(state: _State, cls: Definition) -> None:
    worker = state.agents[cls.AGENT_KEY].DEFAULT_MODEL
    judges = [entry for entry in cls.VALIDATORS if isinstance(entry, JudgeValidator)]
    if worker is not None and any(judge.model == worker for judge in judges):
        fault = Fault(
            f"JudgeValidator uses the worker's own model {worker!r}", "Let another model judge its work."
        )
        _report(state, cls, JUDGE_IS_WORKER, fault)


def _report(state: _State, cls: type, id: str, fault: Fault) -> None:
    state.problems.append(Problem(f"{where(cls)}: {fault.message}", fault.hint, path_of(cls), id))


def path_of(cls: type) -> str:
    """The dotted path of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def where(cls: type) -> str:
    """The path of a class and the file it is in, for people."""
    try:
        file = inspect.getsourcefile(cls)
    except TypeError:
        file = None
    return f"{path_of(cls)} ({file})" if file else path_of(cls)
