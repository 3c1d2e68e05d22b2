"""On PostgreSQL a process on any machine is seen to be gone by the lock that its session held."""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection

from agency.models import Execution
from agency.models.clock import Now
from agency.runtime import hint as hints
from agency.runtime import process, sweep
from agency.runtime.claim import claim
from agency.runtime.hint import Hint
from tests.faults.processes import eventually
from tests.integration.runtime.conftest import Submit
from tests.servers import directory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]
NUMBER = 4711


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hint]:
    """This process's own session, which has lived for long enough to judge others."""
    monkeypatch.setattr(hints, "SETTLING", 0.0)
    hints._hints.clear()
    hints.hint().tend()
    yield hints.hint()
    hints.hint().close()
    hints._hints.clear()


@pytest.fixture
def elsewhere() -> Iterator["psycopg.Connection[Any]"]:
    """The session of a worker on another machine, which holds its lock."""
    session = psycopg.connect(**_address(), autocommit=True)
    session.execute(f"SELECT pg_advisory_lock({hints._SPACE}, {NUMBER})".encode())
    yield session
    session.close()


def _address() -> dict[str, Any]:
    settings = connection.settings_dict
    return {"host": settings["HOST"], "user": settings["USER"], "dbname": settings["NAME"]}


@pytest.fixture
def silent(submit: Submit) -> Callable[[], Execution]:
    """An execution that a worker elsewhere has claimed, and whose last beat is nearly two seconds old."""
    execution = submit()
    claim(execution.pk)
    Execution.objects.filter(pk=execution.pk).update(
        claim_owner=f"another machine|17|42|ab|{NUMBER}", lease_until=Now(58.4)
    )

    def swept() -> Execution:
        sweep.recover()
        execution.refresh_from_db()
        return execution

    return swept


def gone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s", [NUMBER])
        return cursor.fetchone()[0] == 0


def test_a_claim_is_taken_when_its_owners_session_is_gone(
    ours: Hint, elsewhere: "psycopg.Connection[Any]", silent: Callable[[], Execution]
) -> None:
    assert silent().claim_id is not None
    elsewhere.close()
    eventually(gone)
    assert silent().claim_id is None


def test_a_fresh_beat_is_stronger_than_a_lost_session(
    ours: Hint, silent: Callable[[], Execution], settings: Any
) -> None:
    settings.AGENCY = {"BEAT_SECONDS": 20.0}
    Execution.objects.update(lease_until=Now(59.5))
    assert gone()
    assert silent().claim_id is not None


def test_a_young_session_judges_nobody_since_a_server_that_restarts_takes_every_lock(
    ours: Hint, silent: Callable[[], Execution], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "SETTLING", 60.0)
    assert silent().claim_id is not None


def test_a_session_that_is_cut_is_opened_anew_and_is_young_again(
    ours: Hint, silent: Callable[[], Execution], monkeypatch: pytest.MonkeyPatch
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s",
            [hints._SPACE],
        )
    assert silent().claim_id is not None
    assert ours.number is None
    monkeypatch.setattr(hints, "SETTLING", 60.0)
    ours.tend()
    assert ours.number is not None
    assert silent().claim_id is not None


def test_claims_carry_the_number_only_while_the_lock_is_held(ours: Hint, settings: Any) -> None:
    assert process.owner().endswith(f"|{ours.number}")
    settings.AGENCY = {"DEATH_HINT": False}
    ours.tend()
    assert ours.number is None
    assert len(process.owner().split("|")) == 4


def test_the_lock_of_a_living_process_is_left_to_it(ours: Hint) -> None:
    other = Hint()
    other.tend()
    assert other.number is not None
    assert not ours.is_gone(other.number)
    number = other.number
    other.close()
    eventually(lambda: ours.is_gone(number))


def test_behind_a_pooler_there_is_no_hint(
    ours: Hint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pooler(str(connection.settings_dict["HOST"])) as host:
        monkeypatch.setitem(connection.settings_dict, "HOST", host)
        pooled = Hint()
        pooled.tend()
        pooled.tend()
    assert pooled.number is None
    assert caplog.text.count("no death hint: a pooler gives sessions to others") == 1


def test_a_session_that_ends_while_it_is_looked_at_is_not_taken_for_a_poolers(
    ours: Hint, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint, host = Hint(), connection.settings_dict["HOST"]
    with pooler(str(host), ends_at=b"pg_backend_pid") as broken:
        monkeypatch.setitem(connection.settings_dict, "HOST", broken)
        hint.tend()
    assert hint.number is None
    monkeypatch.setitem(connection.settings_dict, "HOST", host)
    hint.tend()
    assert hint.number is not None
    hint.close()


@contextlib.contextmanager
def pooler(server: str, *, ends_at: bytes | None = None) -> Iterator[str]:
    """A server in front of PostgreSQL that names another process than the one behind it, as poolers do.

    It ends the session when it is asked for `ends_at`.
    """
    with directory("agency-pooler-") as home, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / SOCKET))
        listener.listen()

        def serve() -> None:
            client, _ = listener.accept()
            behind = socket.socket(socket.AF_UNIX)
            behind.connect(f"{server}/{SOCKET}")
            threading.Thread(target=_pump, args=(client, behind, ends_at), daemon=True).start()
            _pump(behind, client)

        threading.Thread(target=serve, daemon=True).start()
        yield str(home)


SOCKET = ".s.PGSQL.5432"
KEY_DATA = re.compile(rb"K\x00\x00\x00\x0c....", re.DOTALL)


def _pump(source: socket.socket, target: socket.socket, ends_at: bytes | None = None) -> None:
    with contextlib.suppress(OSError), source, target:
        while chunk := source.recv(65536):
            if ends_at is not None and ends_at in chunk:
                target.shutdown(socket.SHUT_RDWR)
                source.shutdown(socket.SHUT_RDWR)
                return
            target.sendall(KEY_DATA.sub(b"K\x00\x00\x00\x0c\x00\x00\x00\x07", chunk))
