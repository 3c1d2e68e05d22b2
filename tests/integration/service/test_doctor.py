"""The doctor names what is wrong and how to mend it, and pays nothing to find out."""

import os
import socket
import stat
import sys
from pathlib import Path

import pytest
from celery import Celery
from django.core.checks import run_checks
from django.db import connection, connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from agency.cli import doctor
from agency.cli.doctor import database, machine, model, project
from agency.execution import registry
from agency.runtime import broker, database_options


@pytest.fixture
def environ(monkeypatch, tmp_path):
    """An environment without any choice of model, in a home of its own."""
    for name in os.environ:
        if name.startswith("AGENCY_MODEL") or name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AGENCY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AGENCY_CACHE", str(tmp_path / "cache"))
    return monkeypatch


def only(findings, name):
    return next(finding for finding in findings if finding.name == name)


@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_a_sound_installation_gets_a_finding_for_each_thing_and_all_are_fine(environ):
    environ.setenv("AGENCY_MODEL", "scripted:tests.faults.app.models:model")
    findings = doctor.diagnose()
    assert [finding for finding in findings if not finding.ok] == []
    assert {finding.name for finding in findings} == {
        *("Python", "Write access", "Project", "Definitions", "Database", "Migrations"),
        *("Clock", "Broker", "Queue", "Model choice", "Model"),
    }


def test_a_home_that_cannot_be_written_is_named_with_the_variable_that_moves_it(environ, tmp_path):
    (tmp_path / "file").write_text("")
    environ.setenv("AGENCY_HOME", str(tmp_path / "file" / "home"))
    finding = machine.home()
    assert not finding.ok
    assert str(tmp_path / "file") in finding.detail
    assert "AGENCY_HOME" in finding.fix


@pytest.mark.django_db
@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("pragma", "bad"), [("synchronous = NORMAL", "synchronous"), ("busy_timeout = 100", "busy_timeout")]
)
def test_a_pragma_that_is_not_in_force_is_found_by_reading_it_back(transactional_db, pragma, bad):
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {pragma}")
    finding = database._options(connection)
    assert not finding.ok
    assert finding.detail.endswith(f"not as it must be: {bad}")
    assert "OPTIONS" in finding.fix
    connection.close()


@pytest.mark.django_db
@pytest.mark.postgres_only
def test_a_server_that_may_lose_commits_is_named(transactional_db):
    """The tests' own server runs without fsync."""
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
    finding = database._options(connection)
    assert not finding.ok
    assert "fsync and synchronous_commit" in finding.fix
    connection.close()


@pytest.mark.django_db
@pytest.mark.postgres_only
def test_sessions_that_may_hang_for_ever_are_named_by_doctor_and_check(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '5s'")
        cursor.execute("SET idle_in_transaction_session_timeout = '30s'")
    assert database_options.unlimited(connection) == ["statement_timeout"]
    [found] = [one for one in run_checks(databases=["default"]) if one.id == "agency.W021"]
    assert "have no statement_timeout" in found.msg
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '30s'")
    assert database_options.check(databases=["default"]) == []
    connection.close()


@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_a_check_of_the_database_reads_the_pragmas_back(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_keys = ON")
    assert database_options.check(databases=["default"]) == []
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous = OFF")
    [found] = database_options.check(databases=["default"])
    assert (found.id, found.msg[-11:]) == ("agency.W020", "synchronous")
    assert database_options.check(databases=None) == []
    connection.close()


def test_a_database_that_does_not_answer_is_one_finding_with_the_reason(
    tmp_path, monkeypatch, django_db_blocker
):
    settings = {**connections["default"].settings_dict, "ENGINE": "django.db.backends.sqlite3"}
    settings |= {"NAME": str(tmp_path / "no" / "such.db"), "OPTIONS": {}}
    alone = DatabaseWrapper(settings, "default")
    monkeypatch.setattr(connections._connections, "default", alone)
    with django_db_blocker.unblock():
        (finding,) = list(database.examine())
    assert not finding.ok
    assert "unable to open database file" in finding.detail


@pytest.mark.django_db
def test_a_faulty_module_is_named_with_its_hint_as_the_fix(settings, tmp_path, monkeypatch):
    package = tmp_path / "doctor_patient"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "executions.py").write_text("import no_such_module_anywhere")
    monkeypatch.syspath_prepend(str(tmp_path))
    with registry.isolated():
        settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "doctor_patient"]
        registry.autodiscover()
        (finding,) = project.definitions()
    assert not finding.ok
    assert "no_such_module_anywhere" in finding.detail
    assert finding.fix


def test_a_broker_that_does_not_answer_is_named_with_the_reason(celery_broker):
    celery_broker("redis+socket:///nowhere/valkey.sock")
    finding = project.broker()
    assert not finding.ok
    assert "/nowhere/valkey.sock" in finding.detail
    assert "AGENCY_BROKER_URL" in finding.fix


def test_a_broker_that_answers_is_fine(celery_broker, broker_url):
    celery_broker(broker_url)
    assert project.broker().ok


def test_the_password_of_a_broker_is_not_shown(celery_broker):
    celery_broker("redis://:hunter2@127.0.0.1:1/0")
    assert "hunter2" not in project.broker().detail


def test_no_broker_is_fine(celery_broker):
    celery_broker(None)
    assert broker.configured() is None
    assert project.broker().ok


@pytest.fixture
def celery_broker(settings, monkeypatch):
    """`celery_broker(url)`: the project's Celery app has this broker."""

    def choose(url):
        made = Celery("doctor", broker=url, set_as_current=False)
        monkeypatch.setattr(sys.modules[__name__], "app", made, raising=False)
        settings.AGENCY = {"CELERY_APP": f"{__name__}.app"}

    return choose


def test_without_a_choice_the_local_model_is_named_with_what_it_will_fetch(environ):
    findings = model.examine()
    assert "local:default" in only(findings, "Model choice").detail
    assert "1,117 MB" in only(findings, "Model").detail


def test_a_model_file_that_is_missing_is_named(environ):
    environ.setenv("AGENCY_MODEL", "local:/no/such/file.gguf")
    finding = only(model.examine(), "Model")
    assert not finding.ok
    assert "/no/such/file.gguf" in finding.fix


def test_a_key_that_is_missing_is_named(environ):
    environ.setenv("AGENCY_MODEL", "anthropic:claude-haiku-4-5")
    finding = only(model.examine(), "Model")
    assert not finding.ok
    assert "ANTHROPIC_API_KEY" in finding.fix


def test_an_unknown_provider_is_named_with_the_known_ones(environ):
    environ.setenv("AGENCY_MODEL", "nobody:best")
    finding = only(model.examine(), "Model")
    assert not finding.ok
    assert "anthropic" in finding.fix


def test_a_provider_is_reached_but_asked_nothing(environ):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        environ.setenv("AGENCY_MODEL", "openai-compatible:anything")
        environ.setenv("AGENCY_MODEL_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}/v1")
        assert only(model.examine(), "Model").ok
        visitor, _ = server.accept()
        assert visitor.recv(100) == b""
        visitor.close()


def test_a_provider_that_cannot_be_reached_is_named(environ):
    environ.setenv("AGENCY_MODEL", "openai-compatible:anything")
    environ.setenv("AGENCY_MODEL_BASE_URL", "http://127.0.0.1:1/v1")
    finding = only(model.examine(), "Model")
    assert not finding.ok
    assert "127.0.0.1:1 cannot be reached" in finding.detail


def test_the_home_is_made_private(environ):
    assert machine.home().ok
    assert stat.S_IMODE(Path(os.environ["AGENCY_HOME"]).stat().st_mode) == 0o700
