"""A run that kills its worker takes no neighbour along for long, nor does one that hangs hold a worker."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agency.execution import service
from agency.models import Execution
from tests.faults.processes import Processes, eventually
from tests.integration.runtime.conftest import Submit

Bill = Callable[[], Counter[str]]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.e2e]
NEIGHBOUR = 'jot x; linger; {"a": "done"}'


class Kept:
    """A worker that is started again whenever it ends, as by a supervisor."""

    def __init__(self, start: Callable[[], "subprocess.Popen[bytes]"]) -> None:
        self._start = start
        self._process = start()
        self.endings: list[int] = []

    def all_ended(self) -> bool:
        status = self._process.poll()
        if status is not None:
            self.endings.append(status)
            self._process = self._start()
        return all(row.is_terminal for row in Execution.objects.all())


def statuses() -> Counter[str]:
    return Counter(Execution.objects.values_list("status", flat=True))


@pytest.mark.parametrize("kind", ["celery", "polling"])
def test_who_runs_beside_a_run_that_kills_its_worker_is_never_taken_for_it(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker_url: str, kind: str
) -> None:
    started = processes(broker_url if kind == "celery" else None, BEAT_SECONDS=0.3, POLL_SECONDS=0.2)
    poison, *innocent = [submit("die"), *(submit(NEIGHBOUR) for _ in range(6))]
    kept = Kept(lambda: started.celery_worker() if kind == "celery" else started.command("agency_worker"))
    eventually(kept.all_ended, within=240, log=started.log)
    poison.refresh_from_db()
    assert (poison.status, poison.failure_code) == ("failed", "crash_loop")
    assert statuses() == {"finished": len(innocent), "failed": 1}
    # Three times in company, then alone until the cap.
    assert kept.endings == [-signal.SIGKILL] * 3
    assert sum(line.startswith("die") for line in bill().elements()) == 5


def test_a_run_that_has_lost_workers_but_is_sound_finishes_alone_and_leaves_no_process(
    submit: Submit, bill: Bill, processes: Callable[..., Processes]
) -> None:
    started = processes(POLL_SECONDS=0.2)
    execution = submit(NEIGHBOUR)
    Execution.objects.update(claim_count=3, fence=3)
    worker = started.command("agency_worker")
    eventually(lambda: statuses()["finished"], log=started.log)
    assert "runs alone" in started.log()
    assert Execution.objects.get(pk=execution.pk).fence == 4
    eventually(lambda: not _children(worker.pid))


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_worker_and_gives_the_claim_back(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], sign: signal.Signals
) -> None:
    started = processes(POLL_SECONDS=0.2, DRAIN_SECONDS=0.5)
    execution = submit("hang")
    Execution.objects.update(claim_count=3, fence=3)
    worker = started.command("agency_worker")
    eventually(lambda: any(line.startswith("hang") for line in bill()), log=started.log)
    # A second one is started beside it if the first takes long to come up, and finds nothing to claim.
    children = _children(worker.pid)
    assert children
    worker.send_signal(sign)
    worker.wait(60)
    eventually(lambda: not any(map(_exists, children)))
    execution.refresh_from_db()
    assert (execution.claim_id, execution.claim_count) == (None, 3)


@pytest.mark.parametrize("kind", ["celery", "polling"])
def test_a_worker_whose_threads_hang_ends_and_what_hung_is_cancelled(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker_url: str, kind: str
) -> None:
    broker = broker_url if kind == "celery" else None
    started = processes(broker, STUCK_SECONDS=0.5, DRAIN_SECONDS=0.3, POLL_SECONDS=0.2)
    rows = [submit("sulk"), submit("sulk")]
    worker = (
        started.celery_worker(size=2)
        if kind == "celery"
        else started.command("agency_worker", "--threads", "2")
    )
    eventually(lambda: sum(line.startswith("sulk") for line in bill()) == 2, log=started.log)
    for row in rows:
        service.request_cancel(row)
    assert worker.wait(60) == (0 if kind == "celery" else os.EX_TEMPFAIL)
    started.command("agency_worker")
    eventually(lambda: statuses()["cancelled"] == 2, log=started.log)


def test_a_run_that_hangs_alone_ends_its_process_and_its_worker_takes_other_work(
    submit: Submit, bill: Bill, processes: Callable[..., Processes]
) -> None:
    started = processes(STUCK_SECONDS=0.5, POLL_SECONDS=0.2)
    hanging = submit("sulk")
    Execution.objects.update(claim_count=3, fence=3)
    worker = started.command("agency_worker", "--threads", "1")
    eventually(lambda: any(line.startswith("sulk") for line in bill()), log=started.log)
    service.request_cancel(hanging)
    eventually(lambda: not _children(worker.pid), log=started.log)
    submit(NEIGHBOUR)
    eventually(lambda: statuses() == {"cancelled": 1, "finished": 1}, log=started.log)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
