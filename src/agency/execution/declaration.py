"""What a declared agent or definition class must look like; says of a faulty one what to change. Pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError

from agency.agent.configs import FunctionToolConfig, LLMToolConfig, ToolConfig
from agency.agent.declared import BaseAgent
from agency.agent.limits import Limits
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.sources import is_source
from agency.agent.tool_classes import BaseTool
from agency.agent.tools import Tool
from agency.agent.toolset import resolve_tools
from agency.errors import ConfigurationError
from agency.execution.definition import BaseAgenticExecutionDefinition
from agency.execution.failure import ExecutionFailureCode, failure_codes
from agency.execution.inputs import ExecutionInputType
from agency.execution.validators import BaseExecutionValidator

MISSING = object()
_SLUG = re.compile(r"[-a-zA-Z0-9_]{1,100}")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a class, and the fix."""

    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A class variable and what it must be."""

    name: str
    fits: Callable[[Any], bool]
    wanted: str

    def check(self, cls: type) -> Iterator[Fault]:
        value = getattr(cls, self.name, MISSING)
        if value is MISSING or not self.fits(value):
            said = "missing" if value is MISSING or value == "" else _short(value)
            yield Fault(f"{self.name} is {said}", f"Set {self.name} to {self.wanted}.")


def definition_faults(cls: type[BaseAgenticExecutionDefinition]) -> list[Fault]:
    """Everything that keeps the definition from being registered."""
    faults = [fault for rule in _DEFINITION for fault in rule.check(cls)]
    if "execute" in getattr(cls, "__abstractmethods__", ()):
        faults.append(Fault("execute() is missing", "Write execute(self, input_data, conversation) -> str."))
    if faults:
        return faults
    return [
        *_schema_faults("INPUT_TYPE", cls.INPUT_TYPE),
        *_schema_faults("OUTPUT_TYPE", cls.OUTPUT_TYPE),
        *_tool_faults(cls.TOOLS or ()),
        *_code_faults(cls.FAILURE_CODES),
    ]


def agent_faults(cls: type[BaseAgent]) -> list[Fault]:
    """Everything that keeps the agent class from being registered."""
    faults = [fault for rule in _AGENT for fault in rule.check(cls)]
    return faults or [*_tool_faults(cls.TOOLS), *_first_faults(cls)]


def _is_slug(value: Any) -> bool:
    return isinstance(value, str) and _SLUG.fullmatch(value) is not None


def _is_name(value: Any) -> bool:
    return _is_prompt(value) and len(value) <= 200


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_prompt(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_count(lowest: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= lowest


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_subclass(parent: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, type) and issubclass(value, parent)


def _is_model_name(value: Any) -> bool:
    return isinstance(value, str) and all(value.partition(":"))


def _is_output_type(value: Any) -> bool:
    return isinstance(value, type | dict) or hasattr(value, "__origin__") or hasattr(value, "__args__")


def _is_validators(value: Any) -> bool:
    return _is_list(value) and all(_is_validator(entry) for entry in value)


def _is_validator(entry: Any) -> bool:
    if isinstance(entry, type):
        return issubclass(entry, BaseExecutionValidator)
    return isinstance(entry, BaseExecutionValidator) or callable(entry)


def _optional(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_SLUG_WANTED = 'a slug of at most 100 letters, digits, "-" and "_"'
_NAME_WANTED = "a text of 1 to 200 characters"
_LIMITS = Rule(
    "LIMITS", _optional(lambda value: isinstance(value, Limits)), "None or agency.agent.Limits(...)"
)

_DEFINITION = (
    Rule("EXECUTION_KEY", _is_slug, _SLUG_WANTED),
    Rule("AGENT_KEY", _is_slug, "the AGENT_KEY of a registered agent class"),
    Rule("NAME", _is_name, _NAME_WANTED),
    Rule("DESCRIPTION", _optional(_is_text), "None or a text"),
    Rule("INPUT_TYPE", _is_subclass(ExecutionInputType), "a subclass of agency.execution.ExecutionInputType"),
    Rule(
        "VALIDATORS",
        _is_validators,
        "a list of validator classes, configured validators or zero-argument factories of them",
    ),
    Rule("SYSTEM_PROMPT", _optional(_is_text), "None or a text"),
    Rule("TOOLS", _optional(_is_list), "None (the agent's) or a list of tools"),
    Rule("MAX_RETRIES", _is_count(0), "a whole number from 0"),
    Rule("FAILURE_CODES", _is_subclass(ExecutionFailureCode), "a subclass of ExecutionFailureCode"),
    Rule("OUTPUT_TYPE", _optional(_is_output_type), "None, a Pydantic model or a JSON Schema"),
    Rule("FAILURE_SUMMARY_PROMPT", _is_prompt, "a text that asks for a summary"),
    _LIMITS,
)
_AGENT = (
    Rule("AGENT_KEY", _is_slug, _SLUG_WANTED),
    Rule("NAME", _is_name, _NAME_WANTED),
    Rule("DESCRIPTION", _optional(_is_text), "None or a text"),
    Rule("SYSTEM_PROMPT", _is_text, "a text"),
    Rule("TOOLS", _is_list, "a list of tools"),
    Rule("FIRST_TOOLS", _is_list, "a list of names of tools"),
    Rule("DEFAULT_MODEL", _optional(_is_model_name), 'None or "provider:model"'),
    Rule("MAX_STEPS", _is_count(1), "a whole number from 1"),
    Rule("PROMPT_INPUT", _optional(_is_subclass(BaseModel)), "None or a Pydantic model"),
    _LIMITS,
)


def _schema_faults(name: str, schema: Any) -> Iterator[Fault]:
    if schema is None or isinstance(schema, dict):
        return
    try:
        TypeAdapter(schema).json_schema()
    except PydanticUserError as exc:
        fault = str(exc).splitlines()[0]
        yield Fault(f"{name} has no JSON Schema: {fault}", "Use types that JSON can hold.")


def _code_faults(codes: type[ExecutionFailureCode]) -> Iterator[Fault]:
    wrong = [code for code in cast("list[object]", failure_codes(codes)) if not _is_slug(code)]
    if wrong:
        yield Fault(
            f"FAILURE_CODES: {codes.__name__} has the code {_short(wrong[0])}",
            f"Make each code {_SLUG_WANTED}.",
        )


def _tool_faults(tools: Sequence[Any]) -> Iterator[Fault]:
    seen: set[str] = set()
    for item in tools:
        try:
            name = _tool_name(item)
        except ConfigurationError as exc:
            yield Fault(f"TOOLS: {exc}", "Correct the tool or take it out of TOOLS.")
            continue
        if name in seen:
            yield Fault(f"TOOLS has two tools called {name!r}", "Rename one of them.")
        seen.add(name)


def _first_faults(cls: type[BaseAgent]) -> Iterator[Fault]:
    """What FIRST_TOOLS names must be among TOOLS; what a server will offer nobody knows yet."""
    if any(is_source(item) for item in cls.TOOLS) or any(_tool_faults(cls.TOOLS)):
        return
    names = [_tool_name(item) for item in cls.TOOLS]
    for name in cls.FIRST_TOOLS:
        if name not in names:
            known = ", ".join(names) or "none"
            yield Fault(f"FIRST_TOOLS names {name!r}", f"Name tools that are in TOOLS ({known}).")


def _tool_name(item: Any) -> str:
    """The tool's name. A class with settings cannot be built yet: they come from the configured agent."""
    if isinstance(item, ToolConfig | LLMToolConfig):
        item = item.tool_class
    if isinstance(item, FunctionToolConfig):
        item = item.function
    if is_source(item):
        return f"{item.name}__"
    if isinstance(item, type) and issubclass(item, BaseTool) and item.CONFIGURATION_ARGS and item.NAME:
        return item.NAME
    made: Tool = resolve_tools([item], _Lent())[0]
    return made.name


class _Lent:
    """Stands for the model of the agent that has the tool, which an agent inside it may use."""

    def generate(self, request: LlmRequest) -> LlmResponse:
        raise AssertionError("a declaration that is only looked at asked its model")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
