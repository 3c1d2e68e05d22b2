"""A cancel reaches whatever a worker waits for: a model that does not answer, a program that does not end."""

import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agency.execution import service
from agency.models import Execution
from tests.faults.processes import Processes, eventually, kill
from tests.integration.runtime.conftest import Submit

Bill = Callable[[], Counter[str]]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.e2e]
SOON = 20.0
"""Far less than any of them would take by itself."""
MODEL = "openai:any"


class Silent:
    """A server that reads a request and never answers; it knows when the client has hung up."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked, self.left = threading.Event(), threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        with client:
            while client.recv(65536):
                self.asked.set()
        self.left.set()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    server = Silent()
    yield server
    server.close()


def stopped(execution: Execution) -> float:
    """Cancel it; the seconds until it is cancelled."""
    began = time.monotonic()
    service.request_cancel(execution)
    eventually(lambda: Execution.objects.get(pk=execution.pk).status == "cancelled")
    return time.monotonic() - began


def test_a_model_that_does_not_answer_is_hung_up_on(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], silent: Silent
) -> None:
    started = processes()
    started.environ.update({"OPENAI_BASE_URL": f"{silent.url}/v1", "OPENAI_API_KEY": "none"})
    execution = submit("anything")
    agent = {**execution.config["agent"], "model": MODEL}
    Execution.objects.update(config={**execution.config, "agent": agent})
    started.command("agency_worker")
    eventually(silent.asked.is_set, log=started.log)
    assert stopped(execution) < SOON
    assert silent.left.wait(60)


def spawned(bill: Bill) -> list[int]:
    return [int(line.split()[1]) for line in bill() if line.startswith("spawned")]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", ["cancel", "stop", "kill"])
def test_no_program_of_a_tool_is_left_behind(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], how: str
) -> None:
    started = processes(DRAIN_SECONDS=0.3)
    execution = submit("spawn")
    worker = started.command("agency_worker")
    program, its_child = eventually(lambda: len(spawned(bill)) == 2 and spawned(bill), log=started.log)
    if how == "cancel":
        assert stopped(execution) < SOON
    elif how == "stop":
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    else:
        kill(worker)
    eventually(lambda: not runs(program))
    if how == "kill":
        # The kernel ends the program, not what that has started.
        os.kill(its_child, signal.SIGKILL)
    eventually(lambda: not runs(its_child))
