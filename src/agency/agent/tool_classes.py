"""Tools as classes with a declared name, argument schema and settings, for what a function cannot say."""

from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError

from agency.agent.llm import LlmClient
from agency.agent.tally import CountedClient
from agency.agent.tool_schema import (
    Parameters,
    ToolDefinitionError,
    explain,
    parameters_of,
    parameters_of_class,
    read_docs,
)
from agency.agent.tools import Conduct, Confirmation, Tool
from agency.enums import Effect


class BaseTool:
    """A tool as a class: subclass, declare, write `run`.

    `run(...)` gets the validated fields of `ARGS_SCHEMA` by keyword (without an `ARGS_SCHEMA` its own
    signature is the schema) and parameters annotated with `ExecutionContext`, `ToolCallInfo` or an
    `Injected` type beside them. `CONFIGURATION_ARGS` describes the tool's settings; the instance finds
    them in `self.configuration`. One instance serves many runs at once: keep no state of a run in it.
    """

    NAME: ClassVar[str] = ""
    DESCRIPTION: ClassVar[str] = ""
    ARGS_SCHEMA: ClassVar[type[BaseModel] | None] = None
    CONFIGURATION_ARGS: ClassVar[type[BaseModel] | None] = None
    RETURN_DIRECT: ClassVar[bool] = False
    EFFECT: ClassVar[Effect] = Effect.UNSAFE
    REQUIRES_CONFIRMATION: ClassVar[Confirmation] = False
    TIMEOUT: ClassVar[float | None] = None
    PARALLEL: ClassVar[bool] = True
    RETRIES: ClassVar[int] = 0

    run: Any

    def __init__(self, configuration: BaseModel | dict[str, Any] | None = None) -> None:
        self.configuration: Any = self.check_configuration(configuration)

    @classmethod
    def check_configuration(cls, configuration: BaseModel | dict[str, Any] | None) -> BaseModel | None:
        """The settings as an instance of `CONFIGURATION_ARGS`; a wrong one names the field."""
        schema = cls.CONFIGURATION_ARGS
        if schema is None:
            if configuration:
                raise ToolDefinitionError(f"tool {cls.NAME!r} takes no configuration (no CONFIGURATION_ARGS)")
            return None
        if isinstance(configuration, schema):
            return configuration
        try:
            return schema.model_validate(configuration or {})
        except ValidationError as exc:
            raise ToolDefinitionError(f"tool {cls.NAME!r}: configuration: {explain(exc)}") from exc

    @classmethod
    def overridden(cls, declared: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
        """The settings that count where some are stored for an agent: these, on top of what is declared.

        A tool whose declared settings guard something overrides it, and raises `ToolDefinitionError` for what
        would widen them.
        """
        return {**declared, **stored}

    def as_tool(self) -> Tool:
        """The object that an agent offers and calls."""
        name = self.checked_name()
        if not callable(getattr(self, "run", None)):
            raise ToolDefinitionError(f"tool {name!r}: {type(self).__qualname__} has no run() method")
        return Tool(self.run, name, self._description(), self._parameters(), self.conduct())

    @classmethod
    def checked_name(cls) -> str:
        if not cls.NAME:
            raise ToolDefinitionError(f"{cls.__module__}.{cls.__qualname__} has no NAME")
        return cls.NAME

    @classmethod
    def conduct(cls) -> Conduct:
        """How the tool may be called, from its declarations."""
        return Conduct(
            effect=Effect(cls.EFFECT),
            requires_confirmation=cls.REQUIRES_CONFIRMATION,
            timeout=cls.TIMEOUT,
            parallel=cls.PARALLEL,
            retries=cls.RETRIES,
            return_direct=cls.RETURN_DIRECT,
        )

    def parameters_for(self, function: Callable[..., Any]) -> Parameters:
        """What `function` takes from the model: `ARGS_SCHEMA`, or else its own signature."""
        cls, docs = type(self), read_docs(function.__doc__)
        if cls.ARGS_SCHEMA is None:
            return parameters_of(function, cls.NAME, docs)
        return parameters_of_class(function, cls.NAME, cls.ARGS_SCHEMA, docs)

    def _description(self) -> str:
        return type(self).DESCRIPTION or read_docs(type(self).__doc__).description

    def _parameters(self) -> Parameters:
        return self.parameters_for(self.run)


class BaseFunctionTool(BaseTool):
    """A class tool that depends on nothing but its arguments and settings."""


class BaseLLMTool(BaseTool):
    """A class tool that may ask a language model (`self.llm`) and search a data set (`self.data_set`).

    What `self.llm` costs in a call counts for the agent that called, and for its limits. It is on record with
    the call's result: a call that is made again after a crash pays again.
    """

    def __init__(
        self,
        configuration: BaseModel | dict[str, Any] | None = None,
        llm: LlmClient | None = None,
        data_set: Any = None,
    ) -> None:
        super().__init__(configuration)
        self._llm = llm
        self.data_set = data_set

    @property
    def llm(self) -> LlmClient:
        if self._llm is None:
            raise ToolDefinitionError(f"tool {self.NAME!r} has no model; give its LLMToolConfig an llm")
        return CountedClient(self._llm)
