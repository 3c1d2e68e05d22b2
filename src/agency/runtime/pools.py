"""Which of Celery's pools executions can run in: a worker with another one refuses to start."""

from typing import Any

from django.core import checks

from agency.enums import Wakeup
from agency.errors import ConfigurationError

TASKS = tuple(f"agency.{wakeup}" for wakeup in Wakeup)
"""The frozen names of our tasks."""
UNFIT_POOLS = frozenset({"gevent", "eventlet", "solo"})
"""In the first two a call that blocks stops the beats of all; in the last, one run stops the worker."""


def task_name(wakeup: Wakeup) -> str:
    """The Celery task that a wake-up is sent to."""
    return f"agency.{wakeup}"


def unfit(app: Any, pool: Any) -> str | None:
    """Why a worker cannot run executions; `None` if it can, or takes none of their messages."""
    queues = app.amqp.queues
    routed = {app.amqp.router.route({}, task)["queue"].name for task in TASKS}
    if routed.isdisjoint(queues.consume_from):
        return None
    name = pool if isinstance(pool, str) else pool.__module__.rpartition(".")[2]
    if name in UNFIT_POOLS:
        return (
            f"Executions do not run in Celery's {name} pool: one call that blocks would stop all beats. "
            "Start this worker with --pool threads or prefork, or without agency's queue."
        )
    late = next((name for name in TASKS if name in app.tasks and app.tasks[name].acks_late), None)
    if late is not None:
        return (
            f"{late} must not be acknowledged late: long runs would be delivered twice, or end the worker. "
            "Take acks_late for it out of task_annotations."
        )
    return None


def check(**_: Any) -> list[checks.CheckMessage]:
    """A Celery pool in which executions cannot run, named before a worker refuses to start."""
    from agency.runtime import queue

    try:
        pool = str(queue.celery_app().conf.worker_pool) if queue.has_celery() else ""
    except (ConfigurationError, ImportError):
        return []
    if pool not in UNFIT_POOLS:
        return []
    hint = "Use threads or prefork for the workers that take agency's queue."
    return [checks.Warning(f"executions do not run in Celery's {pool} pool", hint=hint, id="agency.W022")]
