"""The Celery tasks. Their names and arguments are frozen: messages outlive deployments.

A message is only a hint to look at a row. It is acknowledged at once, never retried by Celery and
carries no delay: what is lost or doubled changes nothing.
"""

from celery import shared_task

from agency.runtime import celery_worker, slots


@shared_task(name="agency.run_execution", ignore_result=True, acks_late=False, max_retries=0)
def run_execution(execution_id: str, expected_iteration: int) -> str:
    """Run the execution if it is still due at this iteration and this worker has room."""
    return slots.run_woken(execution_id, expected_iteration)


@shared_task(name="agency.start_mission", ignore_result=True, acks_late=False, max_retries=0)
def start_mission(execution_id: str, expected_iteration: int = 1) -> str:
    """Begin a mission's execution: its only turn, or the first iteration of its loop."""
    return slots.run_woken(execution_id, expected_iteration)


@shared_task(name="agency.run_loop_iteration", ignore_result=True, acks_late=False, max_retries=0)
def run_loop_iteration(execution_id: str, expected_iteration: int) -> str:
    """Run one iteration of a loop if it is still the one that is due."""
    return slots.run_woken(execution_id, expected_iteration)


@shared_task(name="agency.resume_mission", ignore_result=True, acks_late=False, max_retries=0)
def resume_mission(execution_id: str, expected_iteration: int) -> str:
    """Go on with a mission after a person, a signal, a watch or the time has ended its pause."""
    return slots.run_woken(execution_id, expected_iteration)


celery_worker.connect()
