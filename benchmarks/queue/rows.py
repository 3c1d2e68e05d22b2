"""Makes executions by the thousand, as clones of one, so that filling the table takes seconds."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection

from agency.models import ConfiguredAgent, Execution, Mission, Thread
from agency.models.clock import Now

EXECUTION, THREAD = Execution._meta.db_table, Thread._meta.db_table


def agent(owner: str) -> ConfiguredAgent:
    user, _ = get_user_model().objects.get_or_create(username=owner)
    made, _ = ConfiguredAgent.objects.get_or_create(owner=user, name=owner, agent_key="bench")
    return made


def one(whose: ConfiguredAgent, iteration: int = 0, due: Any = None) -> Execution:
    """An execution that is due now, or at an SQL expression; with `iteration` already behind it."""
    thread = Thread.objects.create(owner=whose.owner, agent=whose)
    return Execution.objects.create(
        owner=whose.owner,
        agent=whose,
        thread=thread,
        provider="bench",
        execution_key="bench",
        iteration=iteration,
        next_run_at=due or Now(),
    )


def mission(whose: ConfiguredAgent, iterations: int) -> Mission:
    """A loop that never finds that it is complete."""
    return Mission.objects.create(
        owner=whose.owner,
        agent=whose,
        name="bench",
        prompt="Do all parts.",
        loop_prompt="Is there more?",
        max_iterations=iterations,
    )


def many(like: Execution, count: int, due: str) -> None:
    """`count` clones of an execution, each with a thread; `due` is SQL of when, and may be random."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE fresh AS SELECT gen_random_uuid() AS id FROM generate_series(1, %s)", [count]
        )
        cursor.execute(_insert(Thread, like.thread, {"id": "fresh.id"}))
        values = {"id": "fresh.id", "thread_id": "fresh.id", "next_run_at": due}
        cursor.execute(_insert(Execution, like, values))
        cursor.execute("DROP TABLE fresh")


def _insert(model: Any, like: Any, instead: dict[str, str]) -> str:
    columns = [field.column for field in model._meta.concrete_fields]
    chosen = ", ".join(instead.get(column, f"like_it.{column}") for column in columns)
    table = model._meta.db_table
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} "
        f"FROM fresh, {table} like_it WHERE like_it.id = '{like.pk}'"
    )
