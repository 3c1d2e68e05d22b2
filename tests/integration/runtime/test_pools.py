"""A Celery worker in which executions cannot run refuses to start and says what to do."""

import inspect
from typing import Any

import pytest
from celery import Celery, current_app
from django.core.checks import run_checks

from agency.runtime import tasks
from agency.runtime.pools import TASKS, unfit


def app(**conf: Any) -> Celery:
    """A project's app that has agency's tasks."""
    new = Celery("pools", set_as_current=False)
    new.conf.update(broker_url="memory://", **conf)
    new.finalize()
    return new


NAMES = ("agency.run_execution", "agency.start_mission", "agency.run_loop_iteration", "agency.resume_mission")


@pytest.mark.parametrize("name", NAMES)
def test_a_task_has_the_name_and_the_arguments_that_older_and_newer_messages_have(name: str) -> None:
    task = getattr(tasks, name.removeprefix("agency."))
    assert task.name == name
    assert current_app.tasks[name] == task
    assert list(inspect.signature(task.run).parameters) == ["execution_id", "expected_iteration"]
    assert (task.max_retries, task.ignore_result, task.acks_late) == (0, True, False)


def test_there_are_no_other_tasks() -> None:
    assert TASKS == NAMES


@pytest.mark.parametrize("pool", ["gevent", "eventlet", "solo"])
def test_pools_that_one_run_would_stop_are_refused(pool: str) -> None:
    said = unfit(app(), pool)
    assert said is not None
    assert f"{pool} pool" in said
    assert "--pool threads or prefork" in said


@pytest.mark.parametrize("pool", ["threads", "prefork", "celery.concurrency.thread:TaskPool"])
def test_threads_and_processes_are_fine(pool: str) -> None:
    assert unfit(app(), pool) is None


def test_a_worker_of_other_queues_may_have_any_pool() -> None:
    other = app(task_routes={name: {"queue": "agents"} for name in TASKS})
    other.amqp.queues.select(["mail"])
    assert unfit(other, "gevent") is None
    other.amqp.queues.select(["mail", "agents"])
    assert unfit(other, "gevent") is not None


def test_late_acknowledgement_of_our_task_is_refused_and_a_projects_own_default_does_not_matter() -> None:
    assert unfit(app(task_acks_late=True), "threads") is None
    said = unfit(app(task_annotations={"*": {"acks_late": True}}), "threads")
    assert said is not None
    assert "must not be acknowledged late" in said


def test_a_system_check_names_the_pool_beforehand(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.integration.runtime.test_pools.chosen", app(worker_pool="solo"), raising=False)
    settings.AGENCY = {"CELERY_APP": f"{__name__}.chosen"}
    [found] = [message for message in run_checks(tags=["agency"]) if message.id == "agency.W022"]
    assert "solo pool" in found.msg
