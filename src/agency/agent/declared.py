"""Agents declared as classes: what a project's `agents.py` holds, and how one becomes a running agent."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError

from agency.agent.agent import Agent
from agency.agent.limits import Limits
from agency.agent.llm import LlmClient
from agency.agent.tool_schema import explain
from agency.errors import ConfigurationError, InvalidInput

_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class BaseAgent:
    """An agent's design: subclass and declare.

    `SYSTEM_PROMPT` may hold `{variable}` for the fields of `PROMPT_INPUT`; other braces stay text.
    `TOOLS` takes functions, `@tool` objects, `BaseTool` classes and tool configs. `DEFAULT_MODEL` is a
    `"provider:model"`, or `None` for the project's. `FIRST_TOOLS` names tools that each turn must call before
    its answer; where other tools replace the agent's, those among them.
    """

    AGENT_KEY: ClassVar[str] = ""
    NAME: ClassVar[str] = ""
    DESCRIPTION: ClassVar[str | None] = None
    SYSTEM_PROMPT: ClassVar[str] = ""
    TOOLS: ClassVar[Sequence[Any]] = []
    DEFAULT_MODEL: ClassVar[str | None] = None
    MAX_STEPS: ClassVar[int] = 10
    FIRST_TOOLS: ClassVar[Sequence[str]] = ()
    LIMITS: ClassVar[Limits | None] = None
    PROMPT_INPUT: ClassVar[type[BaseModel] | None] = None

    @classmethod
    def system_prompt(cls, variables: Mapping[str, Any] | None = None, override: str | None = None) -> str:
        """The prompt with its variables filled in; a missing or wrong one is named."""
        prompt = cls.SYSTEM_PROMPT if override is None else override
        if cls.PROMPT_INPUT is None:
            return prompt
        try:
            values = cls.PROMPT_INPUT.model_validate(dict(variables or {})).model_dump(mode="json")
        except ValidationError as exc:
            raise InvalidInput(f"prompt variables of {cls.NAME or cls.__name__}: {explain(exc)}") from exc
        return _VARIABLE.sub(lambda found: str(values.get(found[1], found[0])), prompt)

    @classmethod
    def build(
        cls,
        model: LlmClient | str | None = None,
        *,
        tools: Sequence[Any] | None = None,
        instructions: str | None = None,
        variables: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Agent:
        """An `Agent` of this design; what is given replaces what is declared (`tools=[]` means none)."""
        chosen = cls.DEFAULT_MODEL if model is None else model
        if chosen is None:
            raise ConfigurationError(f"{cls.__name__} has no DEFAULT_MODEL; pass model='provider:model'")
        options.setdefault("max_steps", cls.MAX_STEPS)
        options.setdefault("limits", cls.LIMITS)
        agent = Agent(
            cls.NAME or cls.__name__,
            chosen,
            cls.system_prompt(variables, instructions),
            cls.TOOLS if tools is None else tools,
            **options,
        )
        if "first_tools" not in options:
            agent.first_tools = frozenset(cls.FIRST_TOOLS) & {*agent.tools_by_name}
        return agent
