"""What a fresh interpreter loads: the core and the deciding modules stay free of frameworks."""

import json
import subprocess
import sys

import pytest

FRAMEWORKS = {"django", "ninja", "celery", "kombu", "channels", "redis", "uvicorn", "psycopg"}
PROVIDERS = {"mcp", "pydantic_ai", "openai", "anthropic", "google.genai", "huggingface_hub", "xllamacpp"}
HEAVY = {"httpx", "httpx2", "rich", "typer"}
LATER = {"asyncio", "concurrent.futures", "logging", "queue", "uvloop"}
"""What some runs need: the import of the core waits for none of it."""

CORE = ["agency.enums", "agency.errors", "agency.agent"]
DECIDING = [
    "agency.execution.definition",
    "agency.execution.validators",
    "agency.execution.scratchpad",
    "agency.execution.lifecycle",
    "agency.execution.failure",
    "agency.execution.inputs",
    "agency.execution.conversation",
    "agency.mission.branches",
    "agency.mission.course",
    "agency.mission.cron",
    "agency.mission.loop",
    "agency.mission.notices",
    "agency.mission.transcript",
    "agency.mission.waits",
]


def loaded_after(statement: str) -> set[str]:
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("module", CORE)
def test_the_core_loads_no_framework_no_provider_and_nothing_heavy(module: str) -> None:
    assert loaded_after(f"import {module}") & (FRAMEWORKS | PROVIDERS | HEAVY | LATER) == set()


@pytest.mark.parametrize("module", DECIDING)
def test_a_deciding_module_loads_no_framework(module: str) -> None:
    assert loaded_after(f"import {module}") & (FRAMEWORKS | PROVIDERS) == set()


def test_the_public_names_of_the_core_come_from_agency_agent() -> None:
    names = (
        "Agent, AgentResult, Event, ExecutionContext, FilePart, LlmRequest, LlmResponse, Message, "
        "ProviderPart, ToolCall, ToolResult, display_trace, tool"
    )
    assert "agency.agent" in loaded_after(f"from agency.agent import {names}")


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("BaseAgent", "declared"),
        ("Confirmation", "confirmation"),
        ("McpServer", "mcp"),
        ("SummaryBuilder", "summary"),
        ("ToolConfig", "configs"),
        ("display_trace", "trace"),
    ],
)
def test_what_few_runs_need_is_loaded_when_it_is_asked_for(name: str, module: str) -> None:
    assert f"agency.agent.{module}" not in loaded_after("import agency.agent")
    assert f"agency.agent.{module}" in loaded_after(f"from agency.agent import {name}")


def test_every_public_name_of_the_core_can_be_had_and_no_other() -> None:
    names = "names = {}; exec('from agency.agent import *', names)"
    check = "import agency.agent; assert set(agency.agent.__all__) <= names.keys()"
    loaded_after(f"{names}; {check}; assert not hasattr(agency.agent, 'nonsense')")


def test_the_top_package_is_empty() -> None:
    loaded = {name for name in loaded_after("import agency") if name.startswith("agency")}
    assert loaded == {"agency"}
