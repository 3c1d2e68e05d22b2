"""The watches that the project has, by name, and what is wrong with the others.

A faulty class is left out and becomes a problem; it never keeps the others from working.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agency.errors import ConfigurationError, NotDeployed
from agency.execution import discovery
from agency.execution.declaration import Fault
from agency.execution.registry import FAULTY_CLASS, IMPORT_FAILED, TAKEN_NAME, Problem, path_of, where
from agency.mission.watches.declared import BaseWatch, watch_faults

SOURCE = discovery.Source("missions", BaseWatch, "NAME")


@dataclass
class _State:
    watches: dict[str, type[BaseWatch]] = field(default_factory=dict[str, type[BaseWatch]])
    problems: list[Problem] = field(default_factory=list[Problem])


_state = _State()


def get_watch(name: str) -> type[BaseWatch]:
    """The watch of this name. Another release may have one that this code does not: `NotDeployed`."""
    found = _state.watches.get(name)
    if found is None:
        raise NotDeployed(f"no watch is registered as {name!r}; known: {', '.join(names()) or 'none'}")
    return found


def names() -> list[str]:
    """The names of all watches, sorted."""
    return sorted(_state.watches)


def described() -> str:
    """The watches as a supervisor is told of them, one a line; empty if there are none."""
    return "\n".join(f"- {name}: {_state.watches[name].DESCRIPTION.strip()}" for name in names())


def problems() -> list[Problem]:
    """What the last discovery found wrong."""
    return list(_state.problems)


def autodiscover() -> None:
    """Fill the registry anew from the installed apps' `missions` modules and from entry points."""
    global _state
    found = discovery.discover([SOURCE])
    state = _State()
    state.problems += [
        Problem(failure.message, failure.hint, failure.source, IMPORT_FAILED) for failure in found.failures
    ]
    _add(state, found.classes)
    _state = state


def register(*classes: type[BaseWatch]) -> None:
    """Add watches by hand, as a test does; `ConfigurationError` names the first that is faulty."""
    before = len(_state.problems)
    _add(_state, classes)
    faulty = _state.problems[before:]
    if faulty:
        del _state.problems[before:]
        raise ConfigurationError(f"{faulty[0].message}. {faulty[0].hint}")


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """Undo at the end what the block does to the registry. For tests."""
    global _state
    kept = _state
    _state = _State(dict(kept.watches), list(kept.problems))
    try:
        yield
    finally:
        _state = kept


def _add(state: _State, classes: Iterable[type]) -> None:
    for cls in classes:
        assert issubclass(cls, BaseWatch)
        faults = watch_faults(cls)
        for fault in faults:
            _report(state, cls, FAULTY_CLASS, fault)
        if faults:
            continue
        other = state.watches.setdefault(cls.NAME, cls)
        if other is not cls:
            fault = Fault(f"NAME {cls.NAME!r} is taken by {where(other)}", "Give one of them another NAME.")
            _report(state, cls, TAKEN_NAME, fault)


def _report(state: _State, cls: type, id: str, fault: Fault) -> None:
    state.problems.append(Problem(f"{where(cls)}: {fault.message}", fault.hint, path_of(cls), id))
