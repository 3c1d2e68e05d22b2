"""`agency up`, `worker`, `doctor` and the command itself, as far as they go without a running service."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

Agency = Callable[..., Any]


def test_the_version_is_the_distributions(agency: Agency) -> None:
    assert agency("--version").out.strip() == f"agency {version('agency-django')}"


def test_an_unknown_command_is_a_usage_error(agency: Agency) -> None:
    called = agency("lift-off")
    assert called.code == 2
    assert "Traceback" not in called.err


@pytest.mark.parametrize("command", [(), ("cancel",), ("inbox",), ("mission", "schedule", "list")])
def test_help_announces_no_value_beside_a_flag(agency: Agency, command: tuple[str, ...]) -> None:
    said = agency(*command, "--help").out
    assert "--help" in said
    assert "<bool>" not in said


def test_a_worker_must_be_told_how_to_find_work(agency: Agency) -> None:
    called = agency("worker")
    assert called.code == 2
    assert "--poll" in called.err


def test_up_in_a_home_that_cannot_be_written_says_the_fix(
    agency: Agency, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENCY_HOME", "/proc/agency")
    called = agency("up")
    assert called.code == 1
    assert "AGENCY_HOME" in called.err
    assert "Traceback" not in called.err


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"AGENCY_APPS": "no_such_app"}, ("no_such_app", "AGENCY_APPS")),
        ({"AGENCY_WORKER_THREADS": "many"}, ("AGENCY_WORKER_THREADS", "'many'", "number")),
        ({"AGENCY_WORKER_THREADS": "0"}, ("AGENCY_WORKER_THREADS", "'0'", "number")),
        ({"AGENCY_LOG_LEVEL": "loud"}, ("AGENCY_LOG_LEVEL", "'loud'", "WARNING")),
        ({"DJANGO_SETTINGS_MODULE": "no_such.settings"}, ("no_such", "DJANGO_SETTINGS_MODULE")),
    ],
    ids=["app", "threads", "no threads", "log level", "settings"],
)
def test_a_mistake_in_the_environment_is_one_sentence_for_every_command(
    environ: dict[str, str], words: tuple[str, ...], tmp_path: Path
) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    ran = subprocess.run(
        [sys.executable, "-m", "agency.cli", "list"],
        env={**kept, "AGENCY_HOME": str(tmp_path / "home"), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr
    assert [word for word in words if word not in ran.stderr] == []


def test_doctor_looks_on_where_a_variable_of_the_ready_project_is_wrong(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    ran = subprocess.run(
        [sys.executable, "-m", "agency.cli", "doctor", "--json"],
        env={**kept, "AGENCY_HOME": str(tmp_path / "home"), "AGENCY_WORKER_THREADS": "many"},
        capture_output=True,
        text=True,
        check=False,
    )
    findings = {finding["name"]: finding for finding in json.loads(ran.stdout)}
    assert ran.returncode == 1
    assert "AGENCY_WORKER_THREADS" in findings["Project"]["detail"]
    assert "DJANGO_SETTINGS_MODULE" not in findings["Project"]["fix"]
    assert "Model" in findings


@pytest.mark.django_db(transaction=True)
def test_doctor_names_each_finding_and_its_exit_code_is_their_sum(agency: Agency) -> None:
    called = agency("doctor", "--json")
    findings = json.loads(called.out)
    assert {"name", "ok", "detail", "fix"} == set(findings[0])
    assert called.code == (0 if all(finding["ok"] for finding in findings) else 1)
    assert all(finding["fix"] for finding in findings if not finding["ok"])
    shown = agency("doctor").out
    assert [finding["name"] for finding in findings if finding["name"] not in shown] == []


def test_help_loads_no_django_project() -> None:
    code = (
        "import sys; sys.argv = ['agency', '--help']\n"
        "from agency.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'django', 'httpx', 'ninja', 'celery', 'pydantic_ai'} & set(sys.modules)\n"
    )
    environ = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
