"""What is set on an agent's row: each setting that its class cannot use is named."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from agency.agent import BaseAgent, BaseFunctionTool, ToolConfig
from agency.agent.http_get import HttpGet
from agency.errors import InvalidInput
from agency.execution.settings import check_settings


class Voice(BaseModel):
    tone: str
    words: int = 50


class Folder(BaseModel):
    path: str
    depth: int = Field(default=1, ge=1)


class Filing(BaseFunctionTool):
    """File a paper."""

    NAME = "filing"
    CONFIGURATION_ARGS = Folder

    def run(self, paper: str) -> str:
        return paper


class Clerk(BaseAgent):
    NAME = "Clerk"
    SYSTEM_PROMPT = "Be {tone}."
    PROMPT_INPUT = Voice


WEB = ToolConfig(HttpGet, {"allowed_hosts": ["*.example.org", "example.com:8080"], "timeout": 5})
TOOLS = [ToolConfig(Filing, {"path": "/in"}), WEB, len]
GOOD: dict[str, Any] = {"prompt_variables": {"tone": "brief"}}


def paths(**given: Any) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        check_settings(Clerk, TOOLS, **GOOD | given)
    assert str(caught.value).startswith(caught.value.errors[0]["path"])
    return [error["path"] for error in caught.value.errors]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (None, "prompt_variables.tone"),
        ({"tone": 3}, "prompt_variables.tone"),
        ({"tone": "a", "colour": "red"}, "prompt_variables.colour"),
        (["tone"], "prompt_variables"),
    ],
)
def test_prompt_variables_are_those_of_the_class(given: Any, path: str) -> None:
    assert paths(prompt_variables=given) == [path]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"max_steps": 0}, "limits.max_steps"),
        ({"max_steps": True}, "limits.max_steps"),
        ({"concurrency": 0}, "limits.concurrency"),
        ({"max_tokens": -1}, "limits.max_tokens"),
        ({"max_cost": "1"}, "limits.max_cost"),
        ({"max_token": 1}, "limits.max_token"),
        (3, "limits"),
    ],
)
def test_limits_are_those_of_a_turn(given: Any, path: str) -> None:
    assert paths(limits=given) == [path]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"filling": {}}, "tool_settings.filling"),
        ({"len": {}}, "tool_settings.len"),
        ({"filing": 1}, "tool_settings.filing"),
        ({"filing": {"depth": 0}}, "tool_settings.filing"),
        ({"http_get": {"allowed_hosts": ["evil.example"]}}, "tool_settings.http_get"),
        ([], "tool_settings"),
    ],
)
def test_tool_settings_are_those_of_tools_that_have_some(given: Any, path: str) -> None:
    assert paths(tool_settings=given) == [path]


def test_what_fits_passes() -> None:
    check_settings(
        Clerk,
        TOOLS,
        **GOOD,
        limits={"max_steps": 3, "concurrency": 2, "max_cost": 0.5, "max_tokens": None},
        tool_settings={"filing": {"depth": 2}, "http_get": {"allowed_hosts": ["a.example.org"]}},
    )
