"""From a function to what a model may call: JSON Schema, validation of arguments, hidden parameters."""

import inspect
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import PydanticJsonSchemaWarning

from agency.agent.injection import InjectedParameter, is_injected
from agency.errors import ConfigurationError


class ToolDefinitionError(ConfigurationError, TypeError):
    """A tool cannot be offered to a model as it is written; the message names the parameter and the fix."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a tool takes: a model that validates, its schema, and how its fields map to parameters.

    `always` are the fields that are passed even where the model left them out.
    """

    model: type[BaseModel]
    schema: dict[str, Any]
    names: Mapping[str, str]
    always: frozenset[str]
    injected: Mapping[str, InjectedParameter]
    positional: tuple[str, ...] = ()

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function; `ValidationError` where the model's do not fit."""
        # What `model_validate` does, without its options, which cost as much as the check itself.
        values: BaseModel = self.model.__pydantic_validator__.validate_python(arguments)
        given, found, always = values.__pydantic_fields_set__, vars(values), self.always
        return {name: found[slot] for slot, name in self.names.items() if slot in given or slot in always}


@dataclass(slots=True)
class Docs:
    """The description of a function and of its parameters, from its docstring."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


def read_docs(text: str | None) -> Docs:
    """Parse a docstring in Google, NumPy, Sphinx or no style at all."""
    if not text or not text.strip():
        return Docs()
    plain = text.strip()
    if "\n" not in plain and ":" not in plain:  # of one sentence the parser makes nothing else
        return Docs(plain)
    import docstring_parser

    doc = docstring_parser.parse(inspect.cleandoc(text))
    description = "\n\n".join(part for part in (doc.short_description, doc.long_description) if part)
    parameters = {p.arg_name: p.description.strip() for p in doc.params if p.description}
    return Docs(description, parameters)


def parameters_of(function: Callable[..., Any], tool_name: str, docs: Docs) -> Parameters:
    """Read a function's signature; whatever a model could not supply is refused here, by name."""
    hints = _hints(function, tool_name)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    always: set[str] = set()
    injected: dict[str, InjectedParameter] = {}
    positional: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        _refuse_star(parameter, tool_name)
        annotation = hints.get(name, Any)
        if (hidden := _hidden(annotation, parameter)) is not None:
            injected[name] = hidden
            continue
        slot = f"arg_{name}"
        names[slot] = name
        fields[slot] = _field(name, annotation, parameter, docs.parameters.get(name))
        if isinstance(parameter.default, FieldInfo):
            always.add(slot)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(name)
            always.add(slot)
    model = _model(tool_name, fields)
    schema = schema_of(model, tool_name)
    return Parameters(model, schema, names, frozenset(always), injected, tuple(positional))


def parameters_of_class(
    run: Callable[..., Any], tool_name: str, arguments: type[BaseModel], docs: Docs
) -> Parameters:
    """The same for a class tool: `arguments` validates, `run` says what it wants injected."""
    hints = _hints(run, tool_name)
    signature = inspect.signature(run).parameters
    injected = {
        name: hidden
        for name, parameter in signature.items()
        if (hidden := _hidden(hints.get(name, Any), parameter)) is not None
    }
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.values())
    fields = list(arguments.model_fields)
    missing = [name for name in fields if name not in signature and not takes_any]
    if missing:
        raise ToolDefinitionError(
            f"tool {tool_name!r}: run() does not take {', '.join(missing)}, a field of {arguments.__name__}"
        )
    schema = schema_of(arguments, tool_name)
    for name, text in docs.parameters.items():
        if name in schema["properties"]:
            schema["properties"][name].setdefault("description", text)
    return Parameters(arguments, schema, {f: f for f in fields}, frozenset(fields), injected)


def schema_of(model: type[BaseModel], tool_name: str) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, without the titles that only cost tokens."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
            schema = model.model_json_schema()
    except PydanticUserError as exc:
        raise ToolDefinitionError(
            f"tool {tool_name!r}: a parameter has no JSON Schema: {exc.message}"
        ) from exc
    for name, part in {**schema.get("properties", {}), **schema.get("$defs", {})}.items():
        if _holds_bytes(part):
            raise ToolDefinitionError(
                f"tool {tool_name!r}: `{name}` is bytes, which a model cannot send; take a str (base64)"
            )
    schema.pop("description", None)
    stripped = _without_titles(schema)
    stripped.setdefault("properties", {})
    return stripped


def explain(error: ValidationError) -> str:
    """The faults of arguments or answers in one line each, field first."""
    lines: list[str] = []
    for fault in error.errors(include_url=False, include_context=False):
        path = ".".join(str(part) for part in fault["loc"])
        got = "" if fault["type"] in {"missing", "extra_forbidden"} else _got(fault["input"])
        lines.append(f"{path}: {fault['msg']}{got}" if path else f"{fault['msg']}{got}")
    return "; ".join(lines)


def _got(value: Any) -> str:
    text = repr(value)
    return f" (got {text[:80]}{'…' if len(text) > 80 else ''})"


def _hints(function: Callable[..., Any], tool_name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as exc:
        raise ToolDefinitionError(
            f"tool {tool_name!r}: the annotation {exc.name!r} is not known in its module; import it there"
        ) from exc


def _refuse_star(parameter: inspect.Parameter, tool_name: str) -> None:
    if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        raise ToolDefinitionError(
            f"tool {tool_name!r}: {star}{parameter.name} has no schema; name each parameter"
        )


def _hidden(annotation: Any, parameter: inspect.Parameter) -> InjectedParameter | None:
    if typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    has_default = parameter.default is not inspect.Parameter.empty
    if is_injected(annotation):
        return InjectedParameter(annotation, has_default)
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        wanted = [arg for arg in typing.get_args(annotation) if is_injected(arg)]
        if wanted:
            return InjectedParameter(wanted[0], has_default)
    return None


def _field(name: str, annotation: Any, parameter: inspect.Parameter, description: str | None) -> Any:
    default = parameter.default
    if isinstance(annotation, type) and issubclass(annotation, bytes | bytearray | memoryview):
        annotation = bytes
    if isinstance(default, FieldInfo):
        annotation = Annotated[annotation, default]
    extra: dict[str, Any] = {"description": description}
    if description is None or _described(annotation):
        extra = {}
    described = Annotated[annotation, Field(alias=name, **extra)]
    if isinstance(default, FieldInfo):
        return described
    return described, ... if default is inspect.Parameter.empty else default


def _described(annotation: Any) -> bool:
    if typing.get_origin(annotation) is not Annotated:
        return False
    extras = typing.get_args(annotation)[1:]
    return any(isinstance(extra, FieldInfo) and extra.description for extra in extras)


def _model(tool_name: str, fields: dict[str, Any]) -> type[BaseModel]:
    try:
        return _made(tool_name, fields)
    except PydanticUserError:
        for slot, definition in fields.items():
            try:
                _made("Probe", {slot: definition})
            except PydanticUserError as exc:
                why = exc.message.splitlines()[0]
                name = slot.removeprefix("arg_")
                raise ToolDefinitionError(
                    f"tool {tool_name!r}: the type of `{name}` cannot be described to a model: {why}"
                ) from exc
        raise


def _made(name: str, fields: dict[str, Any]) -> type[BaseModel]:
    model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
        model.model_json_schema()
    return model


def _holds_bytes(part: Any) -> bool:
    if isinstance(part, dict):
        node = cast("dict[str, Any]", part)
        is_bytes = node.get("type") == "string" and node.get("format") == "binary"
        return is_bytes or any(_holds_bytes(value) for value in node.values())
    if isinstance(part, list):
        return any(_holds_bytes(value) for value in cast("list[Any]", part))
    return False


def _without_titles(node: Any, names: bool = False) -> Any:
    """Drop the key `title` of schemas, but keep a property or definition that is called so."""
    if isinstance(node, list):
        return [_without_titles(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    items = cast("dict[str, Any]", node).items()
    return {
        key: value
        if key in {"default", "const", "enum"} and not names
        else _without_titles(value, not names and key in {"properties", "$defs"})
        for key, value in items
        if names or key != "title"
    }
