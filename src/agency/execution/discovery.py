"""Finds the classes (agents, definitions, watches) that installed apps and distributions bring.

A module that cannot be imported becomes a failure that names it; the search goes on.
"""

import importlib
import importlib.metadata
import importlib.util
import inspect
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from django.apps import apps

from agency.agent.declared import BaseAgent
from agency.execution.definition import BaseAgenticExecutionDefinition


@dataclass(frozen=True, slots=True)
class Source:
    """A submodule of apps (and `agency.<name>` entry points), and whose subclasses are looked for in it.

    An abstract class that does not set the class variable `declares` is only a base for others.
    """

    name: str
    parent: type
    declares: str


SOURCES = (
    Source("agents", BaseAgent, "AGENT_KEY"),
    Source("executions", BaseAgenticExecutionDefinition, "EXECUTION_KEY"),
)


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """A module or entry point that raised; `source` names it, `message` also the file, line and error."""

    source: str
    message: str
    hint: str = "Correct the module; what it declares is missing until then."


@dataclass
class Found:
    """What a search brought, each class once."""

    classes: list[type] = field(default_factory=list[type])
    failures: list[ImportFailure] = field(default_factory=list[ImportFailure])


def discover(sources: Sequence[Source] = SOURCES) -> Found:
    """Look through every installed app, then through the entry points."""
    found = Found()
    for source in sources:
        for app in apps.get_app_configs():
            _search_app(found, app.name, source)
        for entry in importlib.metadata.entry_points(group=f"agency.{source.name}"):
            _search_entry_point(found, entry, source)
    return found


def _search_app(found: Found, app: str, source: Source) -> None:
    name = f"{app}.{source.name}"
    if not _exists(name):
        return
    try:
        module = importlib.import_module(name)
    except Exception as exc:  # whatever a project's module raises, the other modules must still be found
        found.failures.append(_failure(name, exc))
        return
    _keep(found, _declared(module, source, app))


def _search_entry_point(found: Found, entry: importlib.metadata.EntryPoint, source: Source) -> None:
    named = f"entry point {entry.group}: {entry.name} = {entry.value}"
    try:
        loaded = entry.load()
    except Exception as exc:  # the same for another distribution's module
        found.failures.append(_failure(named, exc))
        return
    if isinstance(loaded, ModuleType):
        _keep(found, _declared(loaded, source, loaded.__name__.partition(".")[0]))
    elif isinstance(loaded, type) and issubclass(loaded, source.parent):
        _keep(found, [loaded])
    else:
        wanted = source.parent.__name__
        hint = f"Point it at a module or a subclass of {wanted}."
        found.failures.append(ImportFailure(named, f"{named} is no module and no {wanted}", hint))


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the app is a plain module, which has no submodules
        return False


def _declared(module: ModuleType, source: Source, package: str) -> list[type]:
    """The classes that the module's package brings, without those that are only bases for others."""
    return [cls for cls in vars(module).values() if _counts(cls, source, package)]


def _counts(cls: Any, source: Source, package: str) -> bool:
    if not (isinstance(cls, type) and issubclass(cls, source.parent)) or cls.__name__.startswith("_"):
        return False
    is_base = inspect.isabstract(cls) and source.declares not in vars(cls)
    return not is_base and f"{cls.__module__}.".startswith(f"{package}.")


def _keep(found: Found, classes: Iterable[type]) -> None:
    found.classes += [cls for cls in classes if cls not in found.classes]


def _failure(source: str, error: Exception) -> ImportFailure:
    return ImportFailure(
        source, f"{source} cannot be imported{_place(error)}: {type(error).__name__}: {error}"
    )


def _place(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f" ({error.filename}:{error.lineno})"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename
    ]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if len(frames) > 1 else ""
