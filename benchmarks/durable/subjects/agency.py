"""Ours: the agent's own loop over the journal of a claimed execution, redaction and all."""

import time
from pathlib import Path
from typing import Any

import django
from django.conf import settings

from benchmarks.durable.script import ANSWER, DONE, RESULT, SIZE, sqlite_path, sqlite_size

INSTALLED = None
EFFECT = "read"


class Subject:
    """`EFFECT` of the tool: a call that is no mere read is announced, which is one commit more a step."""

    def __init__(self, url: str, effect: str = EFFECT) -> None:
        self.path = sqlite_path(url) if url.startswith("sqlite") else None
        _configure(url)
        from agency.agent import tool

        @tool(effect=effect)
        def add(a: int, b: int) -> str:
            """Add two numbers."""
            return RESULT

        self.tool = add

    def steps(self, count: int) -> list[float]:
        from agency.agent import Agent, ExecutionContext
        from agency.agent.journal import RunScope
        from agency.execution import ToolScratchpad
        from agency.runtime.claim import claim
        from agency.runtime.journal import DbJournal

        execution = _execution()
        claimed = claim(execution.pk)
        assert claimed is not None
        context = ExecutionContext(str(execution.pk))
        journal = DbJournal(claimed, ToolScratchpad(), context, 0)
        scope = RunScope(journal=journal, payloads=journal.payloads)
        model = Model(count)
        agent = Agent("adder", model, tools=[self.tool], max_steps=count + 1, scope=scope)
        assert agent.run("Add the numbers one by one.", context).output == DONE
        return model.stamps

    def stored(self) -> int:
        from django.db import connection

        if self.path is not None:
            return sqlite_size(connection.connection, self.path)
        with connection.cursor() as cursor:
            cursor.execute(SIZE)
            return cursor.fetchone()[0]


class Model:
    """Asks for the tool `steps` times, then is done."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.stamps: list[float] = []

    def generate(self, request: Any) -> Any:
        from agency.agent import LlmResponse, Message, ToolCall, Usage

        number = len(self.stamps)
        self.stamps.append(time.perf_counter())
        usage = Usage(model_calls=1, input_tokens=10, output_tokens=5)
        if number == self.steps:
            return LlmResponse([Message(role="assistant", content=DONE)], usage)
        call = ToolCall(tool_call_id=f"call_{number}", name="add", arguments={"a": number, "b": 1})
        return LlmResponse([Message(role="assistant", content=ANSWER), call], usage)


def _configure(url: str) -> None:
    from agency.config.database import database

    settings.configure(
        DATABASES={"default": database(url, default=Path("unnamed.sqlite3"), threads=4)},
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "agency"],
        USE_TZ=True,
        SECRET_KEY="for this benchmark only",
    )
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _execution() -> Any:
    from django.contrib.auth import get_user_model
    from django.db.models.functions import Now

    from agency.models import ConfiguredAgent, Execution, Thread

    owner, _ = get_user_model().objects.get_or_create(username="bench")
    agent, _ = ConfiguredAgent.objects.get_or_create(owner=owner, name="adder", agent_key="adder")
    thread = Thread.objects.create(owner=owner, agent=agent)
    return Execution.objects.create(
        owner=owner, agent=agent, thread=thread, execution_key="bench", next_run_at=Now()
    )
