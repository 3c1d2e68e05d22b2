"""`agency run` beside a running service, and `agency worker --poll` without one."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.service import AGENCY, Service, eventually

pytestmark = pytest.mark.e2e


def written(directory: Path, task: str) -> str:
    """A file with the input of the tests' errand."""
    file = directory / "input.json"
    file.write_text(json.dumps({"task": task}))
    return str(file)


def test_run_gives_the_work_to_the_service_that_runs_here(shared: Service, tmp_path: Path) -> None:
    ran = shared.command("run", "fault-errand", "--input", written(tmp_path, '{"said": "done"}'))
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"said": "done"}
    assert "the service here runs it" in ran.stderr


def test_a_failure_in_the_service_is_exit_code_1_with_its_reason(shared: Service, tmp_path: Path) -> None:
    ran = shared.command("run", "fault-errand", "--input", written(tmp_path, "no JSON"))
    assert ran.returncode == 1
    assert "max_retries_exceeded" in ran.stderr


def test_a_polling_worker_runs_what_is_due_until_it_is_told_to_stop(place: Path, tmp_path: Path) -> None:
    service = Service(place)  # its home and environment only: nothing is started
    worker = subprocess.Popen([AGENCY, "worker", "--poll"], env=service.environ)
    try:
        source = written(tmp_path, '{"said": "done"}')
        made = service.command("run", "fault-errand", "--input", source, "--no-wait")
        assert made.returncode == 0, made.stderr

        def status() -> str:
            return str(json.loads(service.command("show", made.stdout.strip(), "--json").stdout)["status"])

        eventually(lambda: status() == "finished")
    finally:
        worker.send_signal(signal.SIGINT)
    assert worker.wait(120) == 0
