"""What projects declare for missions, by name: one registry for each kind of class.

A faulty class is left out and becomes a problem; it never keeps the others from working.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from agency.errors import ConfigurationError, NotDeployed
from agency.execution import discovery
from agency.execution.declaration import Fault
from agency.execution.registry import FAULTY_CLASS, IMPORT_FAILED, TAKEN_NAME, Problem, path_of, where

C = TypeVar("C")


@dataclass
class _State(Generic[C]):
    classes: dict[str, type[C]] = field(default_factory=dict[str, type[C]])
    problems: list[Problem] = field(default_factory=list[Problem])


class Registry(Generic[C]):
    """The subclasses of `parent` in the `missions` modules of apps, by `NAME`. `noun` is for messages."""

    def __init__(self, parent: type[C], faults: Callable[[type[C]], list[Fault]], noun: str) -> None:
        self._source = discovery.Source("missions", parent, "NAME")
        self._faults = faults
        self._noun = noun
        self._state: _State[C] = _State()

    def get(self, name: str) -> type[C]:
        """The class of this name. Another release may have one that this code does not: `NotDeployed`."""
        found = self._state.classes.get(name)
        if found is None:
            known = ", ".join(self.names()) or "none"
            raise NotDeployed(f"no {self._noun} is registered as {name!r}; known: {known}")
        return found

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._state.classes)

    def problems(self) -> list[Problem]:
        """What the last discovery found wrong."""
        return list(self._state.problems)

    def autodiscover(self) -> None:
        """Fill the registry anew from the installed apps' `missions` modules and from entry points."""
        found = discovery.discover([self._source])
        state: _State[C] = _State()
        state.problems += [
            Problem(failure.message, failure.hint, failure.source, IMPORT_FAILED)
            for failure in found.failures
        ]
        self._add(state, found.classes)
        self._state = state

    def register(self, *classes: type[C]) -> None:
        """Add classes by hand, as a test does; `ConfigurationError` names the first that is faulty."""
        before = len(self._state.problems)
        self._add(self._state, classes)
        faulty = self._state.problems[before:]
        if faulty:
            del self._state.problems[before:]
            raise ConfigurationError(f"{faulty[0].message}. {faulty[0].hint}")

    @contextlib.contextmanager
    def isolated(self) -> Iterator[None]:
        """Undo at the end what the block does to the registry. For tests."""
        kept = self._state
        self._state = _State(dict(kept.classes), list(kept.problems))
        try:
            yield
        finally:
            self._state = kept

    def _add(self, state: _State[C], classes: Iterable[type[Any]]) -> None:
        for cls in classes:
            faults = self._faults(cls)
            for fault in faults:
                _report(state, cls, FAULTY_CLASS, fault)
            if faults:
                continue
            other = state.classes.setdefault(cls.NAME, cls)
            if other is not cls:
                fault = Fault(
                    f"NAME {cls.NAME!r} is taken by {where(other)}", "Give one of them another NAME."
                )
                _report(state, cls, TAKEN_NAME, fault)


def _report(state: _State[Any], cls: type, id: str, fault: Fault) -> None:
    state.problems.append(Problem(f"{where(cls)}: {fault.message}", fault.hint, path_of(cls), id))
