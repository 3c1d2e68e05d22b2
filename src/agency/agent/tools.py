"""Tools as the agent runs them: one `Tool` object however a tool was declared, and the `@tool` decorator.

Knows schemas and validation, not how or when a call is made.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, overload

from agency.agent.injection import HumanAnswer, InjectedParameter
from agency.agent.llm import ToolSpec
from agency.agent.tool_schema import Docs, Parameters, ToolDefinitionError, parameters_of, read_docs
from agency.enums import Effect

Confirmation = bool | Callable[[dict[str, Any]], bool]
DEFAULT_ASYNC_TIMEOUT = 60.0
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a tool may be called. `timeout` in seconds; `retries` counts further tries after an exception.

    `requires_confirmation`: a bool, or a predicate on the arguments; one that raises counts as yes.
    """

    effect: Effect = Effect.UNSAFE
    requires_confirmation: Confirmation = False
    timeout: float | None = None
    parallel: bool = True
    retries: int = 0
    return_direct: bool = False


class Tool:
    """A function with everything an agent needs to offer and to call it. Calling it runs the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        description: str,
        parameters: Parameters,
        conduct: Conduct,
    ) -> None:
        _check(name, conduct)
        self.function = function
        self.conduct = conduct
        self.parameters = parameters
        self.spec = ToolSpec(name, description, parameters.schema)
        self.is_async = inspect.iscoroutinefunction(function)
        self.asks_person = any(issubclass(one.type, HumanAnswer) for one in parameters.injected.values())
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def effect(self) -> Effect:
        return self.conduct.effect

    @property
    def return_direct(self) -> bool:
        return self.conduct.return_direct

    @property
    def injected(self) -> Mapping[str, InjectedParameter]:
        return self.parameters.injected

    @property
    def timeout(self) -> float | None:
        """Seconds, or `None`: a plain sync function without a timeout may take as long as it needs."""
        return (
            DEFAULT_ASYNC_TIMEOUT if self.is_async and self.conduct.timeout is None else self.conduct.timeout
        )

    @property
    def may_ask(self) -> bool:
        """Whether there can be a call of this tool that a person must agree to or answer."""
        return self.asks_person or self.conduct.requires_confirmation is not False

    def needs_confirmation(self, arguments: dict[str, Any]) -> bool:
        """Whether a person must agree to or answer this call; a predicate that raises counts as yes."""
        required = self.asks_person or self.conduct.requires_confirmation
        if isinstance(required, bool):
            return required
        try:
            return bool(required(arguments))
        except Exception:
            return True

    def invoke(self, arguments: dict[str, Any]) -> Any:
        """Call the function with validated and injected arguments by name."""
        positional = self.parameters.positional
        if not positional:
            return self.function(**arguments)
        by_name = {name: value for name, value in arguments.items() if name not in positional}
        return self.function(*(arguments[name] for name in positional), **by_name)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect | str = Effect.UNSAFE,
    requires_confirmation: Confirmation = False,
    timeout: float | None = None,
    parallel: bool = True,
    retries: int = 0,
    return_direct: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect | str = Effect.UNSAFE,
    requires_confirmation: Confirmation = False,
    timeout: float | None = None,
    parallel: bool = True,
    retries: int = 0,
    return_direct: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool: name, description and schema come from its signature and docstring.

    `effect` says what repeating a call would do: `read`, `idempotent`, or `unsafe` (the default: a call
    that was cut off is not repeated without a person). `timeout` is in seconds.
    """
    conduct = Conduct(
        effect=_effect(effect, name or getattr(function, "__name__", "tool")),
        requires_confirmation=requires_confirmation,
        timeout=timeout,
        parallel=parallel,
        retries=retries,
        return_direct=return_direct,
    )

    def decorate(inner: Callable[..., Any]) -> Tool:
        return function_tool(inner, name=name, description=description, conduct=conduct)

    return decorate if function is None else decorate(function)


def function_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    conduct: Conduct | None = None,
) -> Tool:
    """A `Tool` from any function; what is not given is read from the function."""
    chosen = name or getattr(function, "__name__", type(function).__name__)
    docs = read_docs(function.__doc__)
    target: Any = function if inspect.isroutine(function) else cast("Any", function).__call__
    parameters = parameters_of(target, chosen, docs)
    return Tool(function, chosen, _description(description, docs), parameters, conduct or Conduct())


def _description(given: str | None, docs: Docs) -> str:
    return docs.description if given is None else given


def _effect(value: Effect | str, name: str) -> Effect:
    try:
        return Effect(value)
    except ValueError:
        known = ", ".join(Effect)
        raise ToolDefinitionError(f"tool {name!r}: effect is {value!r}; use one of {known}") from None


def _check(name: str, conduct: Conduct) -> None:
    if not _NAME.fullmatch(name):
        raise ToolDefinitionError(
            f"tool {name!r}: a name is 1 to 64 letters, digits, '_' or '-' and starts with a letter or '_'; "
            "pass name=..."
        )
    if conduct.timeout is not None and conduct.timeout <= 0:
        raise ToolDefinitionError(f"tool {name!r}: timeout is {conduct.timeout!r}; give seconds above 0")
    if conduct.retries < 0:
        raise ToolDefinitionError(f"tool {name!r}: retries is {conduct.retries!r}; give 0 or more")
    if conduct.retries and conduct.effect is Effect.UNSAFE:
        raise ToolDefinitionError(
            f"tool {name!r}: retries would repeat an unsafe effect; say effect='read' or 'idempotent'"
        )
