"""What is set on an agent's row must fit its class: prompt variables, limits, settings of tools. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from agency.agent.configs import AgentToolConfig, LLMToolConfig, ToolConfig, merged
from agency.agent.declared import BaseAgent
from agency.agent.limits import NAMES, Limits
from agency.agent.tool_classes import BaseTool
from agency.errors import ConfigurationError, InvalidInput

Fault = tuple[str, str]


def check_settings(
    cls: type[BaseAgent],
    tools: Sequence[Any],
    *,
    prompt_variables: Any = None,
    limits: Any = None,
    tool_settings: Any = None,
) -> None:
    """Raise `InvalidInput` with the path of each setting that does not fit.

    `tools` are all declarations that the agent may run with: its class's and those of its definitions.
    """
    faults = [
        *_variable_faults(cls.PROMPT_INPUT, prompt_variables),
        *_limit_faults(limits),
        *_tool_faults(tools, tool_settings),
    ]
    if faults:
        errors = [{"path": path, "message": message} for path, message in faults]
        raise InvalidInput(f"{faults[0][0]}: {faults[0][1]}", errors)


def _variable_faults(schema: type[BaseModel] | None, given: Any) -> Iterator[Fault]:
    if not _is_object(given):
        yield "prompt_variables", "must be an object"
        return
    if schema is None:
        for name in given or {}:
            yield f"prompt_variables.{name}", "the agent's prompt has no variables"
        return
    known = {*schema.model_fields, *(field.alias for field in schema.model_fields.values() if field.alias)}
    for name in given or {}:
        if name not in known and schema.model_config.get("extra") != "allow":
            yield f"prompt_variables.{name}", f"unknown; the prompt has {', '.join(schema.model_fields)}"
    try:
        schema.model_validate(dict(given or {}))
    except ValidationError as exc:
        for fault in exc.errors(include_url=False, include_context=False, include_input=False):
            yield ".".join(("prompt_variables", *map(str, fault["loc"]))), fault["msg"]


_COUNTS = ("max_steps", "concurrency")
"""Limits of an agent's row beside those of a turn: steps of a turn, and executions that run at once."""


def _limit_faults(given: Any) -> Iterator[Fault]:
    if not _is_object(given):
        yield "limits", "must be an object"
        return
    for name, value in cast("dict[str, Any]", given or {}).items():
        if name in _COUNTS:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                yield f"limits.{name}", f"is {value!r}; give a whole number from 1"
        elif name not in NAMES:
            yield f"limits.{name}", f"unknown; there are {', '.join((*_COUNTS, *NAMES))}"
        else:
            try:
                Limits(**{name: value})
            except ConfigurationError as exc:
                yield f"limits.{name}", str(exc).removeprefix(f"{name} ")


def _tool_faults(tools: Iterable[Any], given: Any) -> Iterator[Fault]:
    if not _is_object(given):
        yield "tool_settings", "must be an object"
        return
    declared = list(_configurable(tools))
    names = sorted({cls.NAME for cls, _ in declared})
    for name, stored in cast("dict[str, Any]", given or {}).items():
        path = f"tool_settings.{name}"
        if name not in names:
            yield path, f"unknown; the tools with settings are {', '.join(names) or 'none'}"
        elif not isinstance(stored, dict):
            yield path, "must be an object"
        else:
            same = [one for one in declared if name == one[0].NAME]
            yield from _fits(path, cast("dict[str, Any]", stored), same)


def _fits(path: str, stored: dict[str, Any], declared: list[tuple[type[BaseTool], Any]]) -> Iterator[Fault]:
    for cls, configuration in declared:
        try:
            cls.check_configuration(merged(cls, configuration, stored))
        except ConfigurationError as exc:
            yield path, str(exc).removeprefix(f"tool {cls.NAME!r}: configuration: ")
            return


def _configurable(tools: Iterable[Any]) -> Iterator[tuple[type[BaseTool], Any]]:
    """The tool classes that have settings, each with what is declared for it."""
    for item in tools:
        configuration = None
        if isinstance(item, ToolConfig | LLMToolConfig | AgentToolConfig):
            item, configuration = item.tool_class, item.configuration
        if isinstance(item, type) and issubclass(item, BaseTool) and item.CONFIGURATION_ARGS is not None:
            yield item, configuration


def _is_object(given: Any) -> bool:
    return given is None or isinstance(given, Mapping)
