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


celery_worker.connect()
