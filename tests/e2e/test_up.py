"""`agency up`, with its real web server, worker, dispatcher and broker as processes."""

import json
import os
import signal
import socket
import stat
import subprocess
import time

import pytest

from tests.e2e.service import AGENCY, Service, descendants, eventually, is_alive, running, state_of

pytestmark = pytest.mark.e2e

SOON = 30.0
"""Seconds, also on a busy machine; the call in flight never ends by itself."""
TWO_ATTEMPTS = 'jot first; {"said": "nothing"} | jot second; {"said": "done"}'


def test_an_execution_goes_through_web_server_broker_and_worker(service):
    client = service.client()
    execution = client.ended(client.submit(TWO_ATTEMPTS))
    assert execution["status"] == "finished"
    assert execution["output"] == {"said": "done"}
    assert [attempt["verdict"] for attempt in execution["attempts"]] == ["retry", "passed"]
    roles = {
        command.split()[-1] for command in descendants(service.pid).values() if "config.child" in command
    }
    assert roles == {"web", "worker", "dispatcher"}


def test_what_other_processes_need_to_know_is_told_in_private_files(shared):
    told = shared.home / "run" / "service.json"
    assert json.loads(told.read_text())["pid"] == shared.pid
    assert stat.S_IMODE(told.stat().st_mode) == 0o600
    assert stat.S_IMODE((shared.home / "secret-key").stat().st_mode) == 0o600
    sockets = [path for path in (shared.home / "run").iterdir() if path.is_socket()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in sockets] == [0o700]


def test_ctrl_c_ends_everything_within_seconds_even_with_a_call_in_flight(service):
    client = service.client()
    url = client.submit("hang; {}")
    eventually(lambda: any(line.startswith("hang") for line in service.bill()), log=service.log)
    assert client.execution(url)["status"] == "in_progress"
    family = descendants(service.pid)
    began = time.monotonic()
    assert service.stop(signal.SIGINT) == 0
    assert time.monotonic() - began < SOON
    assert [command for pid, command in family.items() if is_alive(pid)] == []
    assert not (service.home / "run" / "service.json").exists()


def test_an_execution_that_was_cut_by_ctrl_c_goes_on_at_the_next_start(place, database_url):
    for service in running(place, AGENCY_DATABASE_URL=database_url):
        url = service.client().submit('hang; {"said": "done"}')
        eventually(lambda one=service: any(line.startswith("hang") for line in one.bill()), log=service.log)
    for again in running(place, AGENCY_DATABASE_URL=database_url):
        assert again.client().ended(url)["status"] == "finished"
        assert again.bill().count("model 1.0") == 1


def test_a_killed_supervisor_leaves_no_child_not_even_a_busy_one(place):
    service = Service(place).start().ready()
    client = service.client()
    client.submit("hang; {}")
    eventually(lambda: any(line.startswith("hang") for line in service.bill()), log=service.log)
    family = descendants(service.pid)
    assert len(family) >= 4
    os.kill(service.pid, signal.SIGKILL)
    service.stop()
    eventually(lambda: not any(is_alive(pid) for pid in family), log=lambda: str(family))


def test_an_execution_survives_its_worker_and_no_answer_is_paid_twice(service):
    client = service.client()
    url = client.submit('jot one; hang; {"said": "done"}')
    eventually(lambda: any(line.startswith("hang") for line in service.bill()), log=service.log)
    worker = service.child("worker")
    os.kill(worker, signal.SIGKILL)
    execution = client.ended(url)
    assert execution["status"] == "finished"
    assert len(execution["attempts"]) == 1
    calls = [line for line in service.bill() if line.startswith("model")]
    assert calls == ["model 1.0", "model 1.1", "model 1.2"]
    assert service.child("worker") != worker


@pytest.mark.parametrize("role", ["web", "dispatcher"])
def test_a_killed_process_comes_back_and_the_service_with_it(shared, role):
    client = shared.client()
    before = shared.child(role)
    os.kill(before, signal.SIGKILL)
    eventually(
        lambda: any(
            pid != before and command.strip().endswith(role)
            for pid, command in descendants(shared.pid).items()
        ),
        log=shared.log,
    )
    assert client.ended(client.submit('{"said": "done"}'))["status"] == "finished"


def test_a_killed_broker_delays_nothing_for_long(shared):
    client = shared.client()
    broker = next(pid for pid, command in descendants(shared.pid).items() if "valkey-server" in command)
    os.kill(broker, signal.SIGKILL)
    assert client.ended(client.submit('{"said": "done"}'))["status"] == "finished"


def test_without_a_broker_a_worker_polls(place, database_url):
    for service in running(place, AGENCY_DATABASE_URL=database_url, AGENCY_BROKER_URL="none"):
        client = service.client()
        assert client.ended(client.submit(TWO_ATTEMPTS))["status"] == "finished"
        commands = descendants(service.pid).values()
        assert not any("valkey-server" in command for command in commands)
        assert any(command.strip().endswith("poller") for command in commands)


def refused(service: Service) -> str:
    """The one sentence with which `agency up` ends."""
    done = service.command("up")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    said = done.stderr.strip().splitlines()
    assert said, done.stdout
    return " ".join(said)


def test_a_second_service_in_the_same_home_is_refused_and_the_first_goes_on(shared):
    said = refused(shared)
    assert "already runs" in said
    assert str(shared.pid) in said
    assert "AGENCY_HOME" in said
    assert shared.client().http.get("/health/ready").status_code == 200


def test_a_port_that_is_taken_is_refused_and_nothing_is_started(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refused(Service(place, AGENCY_PORT=port))
    assert f"127.0.0.1:{port}" in said
    assert "AGENCY_PORT" in said
    assert "(Address already in use)" in said
    assert not (place / "db.sqlite3").exists()


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"AGENCY_APPS": "no_such_app"}, ("no_such_app", "AGENCY_APPS")),
        ({"AGENCY_DATABASE_URL": "mysql://x/y"}, ("AGENCY_DATABASE_URL", "postgresql://")),
        ({"AGENCY_DATABASE_URL": "postgresql://x@127.0.0.1:1/y"}, ("cannot be used", "AGENCY_DATABASE_URL")),
        ({"AGENCY_PORT": "many"}, ("AGENCY_PORT", "number")),
        ({"AGENCY_WORKER_THREADS": "many"}, ("AGENCY_WORKER_THREADS", "number")),
        ({"AGENCY_MODEL": "no-such:model"}, ("no-such:model", "provider:model")),
        ({"AGENCY_MODEL": "openai:gpt-5-mini", "OPENAI_API_KEY": ""}, ("OPENAI_API_KEY", "AGENCY_MODEL")),
        ({"AGENCY_MODEL": "local:/no/such.gguf"}, ("/no/such.gguf", "local:")),
    ],
    ids=["app", "database scheme", "database server", "port", "threads", "provider", "key", "model file"],
)
def test_a_mistake_in_the_environment_is_one_sentence_with_the_fix(place, environ, words):
    said = refused(Service(place, **environ))
    assert [word for word in words if word not in said] == []


def test_a_home_that_cannot_be_written_is_one_sentence_with_the_fix(place):
    place.write_text("a file, no directory")
    assert "AGENCY_HOME" in refused(Service(place))


def test_ctrl_c_while_it_starts_ends_it_cleanly(place):
    service = Service(place).start()
    eventually(lambda: "Model:" in service.log(), log=service.log)
    family = descendants(service.pid)
    assert service.stop(signal.SIGINT) == 0
    assert [command for pid, command in family.items() if is_alive(pid)] == []
    assert "Traceback" not in service.log()


@pytest.mark.local_model
def test_a_local_model_is_one_process_of_the_service_and_its_key_stays_private(place):
    for service in running(place, AGENCY_MODEL="local:small"):
        told = service.home / "run" / "local-model.json"
        assert stat.S_IMODE(told.stat().st_mode) == 0o600
        key = json.loads(told.read_text())["key"]
        assert key not in service.log()
        models = [command for command in descendants(service.pid).values() if "local_server" in command]
        assert len(models) == 1
        assert key not in models[0]
        model = next(pid for pid, command in descendants(service.pid).items() if "local_server" in command)
        os.kill(service.pid, signal.SIGKILL)
        eventually(lambda pid=model: state_of(pid) in {"", "Z"})


def test_the_command_line_finds_the_running_service(shared):
    path = shared.home.parent / "input.json"
    path.write_text(json.dumps({"task": '{"said": "done"}'}))
    done = shared.command("run", "fault-errand", "--input", str(path), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["output"] == {"said": "done"}
    assert subprocess.run([AGENCY, "--version"], capture_output=True, check=False).returncode == 0
