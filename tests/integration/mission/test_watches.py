"""The watches that agency brings, on real rows, queries and servers; and what becomes of one that fails."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.db import connection

from agency.enums import EventKind
from agency.errors import RunCancelled
from agency.execution.store import lifecycle_event
from agency.mission.watches import BaseWatch, EventWatch, HttpCheck, Look, SqlCheck, View, limited
from agency.mission.watches.declared import watch_faults
from agency.models import ConfiguredAgent, Execution
from tests.faults.processes import eventually
from tests.integration.rows import execution_row

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
Agents = Callable[..., ConfiguredAgent]


def view(execution_id: Any = "00000000-0000-0000-0000-000000000001") -> View:
    return View(str(execution_id), 1, "news", SINCE)


def made(parent: type[BaseWatch], **attributes: Any) -> type[Any]:
    return type("Made", (parent,), {"NAME": "made", "DESCRIPTION": "For a test.", **attributes})


def go_on() -> bool:
    return False


class TestEvents:
    pytestmark = pytest.mark.django_db

    def say(self, row: Execution, kind: EventKind, **data: Any) -> None:
        lifecycle_event(row, kind, data)

    def test_a_new_row_of_the_kind_is_told_and_an_older_one_is_not(self, agency_agent: Agents) -> None:
        row = execution_row(agency_agent("clerk"))
        self.say(row, EventKind.SIGNAL_RECEIVED, name="before")
        watch = made(EventWatch, KINDS=(EventKind.SIGNAL_RECEIVED,))()
        memory = watch.begin(view(row.pk))
        self.say(row, EventKind.RESUMED)
        assert watch.look(view(row.pk), memory).is_over is False
        self.say(row, EventKind.SIGNAL_RECEIVED, name="after")
        found = watch.look(view(row.pk), memory)
        assert found.is_over is True
        (event,) = found.payload["events"]
        assert (event["seq"], event["kind"]) == (3, "mission_signal_received")
        assert event["data"] == {"name": "after"}

    def test_another_executions_log_can_be_watched(self, agency_agent: Agents) -> None:
        agent = agency_agent("clerk")
        own, other = execution_row(agent), execution_row(agent)
        watch = made(EventWatch, KINDS=(EventKind.FINISHED,), EXECUTION=other.pk)()
        memory = watch.begin(view(own.pk))
        self.say(own, EventKind.FINISHED)
        assert watch.look(view(own.pk), memory).is_over is False
        self.say(other, EventKind.FINISHED)
        assert watch.look(view(own.pk), memory).is_over is True

    def test_much_data_is_cut(self, agency_agent: Agents) -> None:
        row = execution_row(agency_agent("clerk"))
        watch = made(EventWatch, KINDS=("mission_signal_received",))()
        memory = watch.begin(view(row.pk))
        for _ in range(30):
            self.say(row, EventKind.SIGNAL_RECEIVED, text="x" * 5_000)
        events = watch.look(view(row.pk), memory).payload["events"]
        assert len(events) == 20 and len(events[0]["data"]) < 2_200

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"KINDS": ()}, "KINDS"),
            ({"KINDS": ("sneezed",)}, "KINDS"),
            ({"KINDS": (EventKind.LOOP_WAITING,)}, "which the wait itself writes"),
            ({"KINDS": (EventKind.FINISHED,), "EXECUTION": "x"}, "EXECUTION"),
        ],
    )
    def test_a_faulty_setting_is_named(self, wrong: dict[str, Any], said: str) -> None:
        (fault,) = watch_faults(made(EventWatch, **wrong))
        assert said in fault.message


@pytest.mark.django_db(transaction=True)
class TestSql:
    def test_it_is_over_when_the_first_value_is_true(self) -> None:
        assert made(SqlCheck, QUERY="SELECT 0")().look(view(), {}).is_over is False
        assert made(SqlCheck, QUERY="SELECT NULL")().look(view(), {}).is_over is False
        assert made(SqlCheck, QUERY="SELECT 1 WHERE 1 = 0")().look(view(), {}).is_over is False
        found = made(SqlCheck, QUERY="SELECT 3 AS many, 'paid' AS state")().look(view(), {})
        assert (found.is_over, found.payload) == (True, {"row": {"many": 3, "state": "paid"}})

    def test_it_sees_what_was_committed(self, agency_agent: Agents) -> None:
        watch = made(SqlCheck, QUERY="SELECT count(*) FROM agency_execution")()
        assert watch.look(view(), {}).is_over is False
        execution_row(agency_agent("clerk"))
        assert watch.look(view(), {}).is_over is True

    def test_it_cannot_write(self, agency_agent: Agents) -> None:
        row = execution_row(agency_agent("clerk"))
        watch = made(SqlCheck, QUERY="UPDATE agency_execution SET provider = 'x' RETURNING 1")
        assert limited.look(watch, view(), {}, go_on).failure in {"OperationalError", "InternalError"}
        row.refresh_from_db()
        assert row.provider == ""

    @pytest.mark.postgres_only
    def test_a_connection_of_a_pool_goes_back_as_it_came(self, monkeypatch: pytest.MonkeyPatch) -> None:
        options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 1}}
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
        watch = made(SqlCheck, QUERY="SELECT current_setting('transaction_read_only')")
        again = connection.copy()
        try:
            assert watch().look(view(), {}).payload == {"row": {"current_setting": "on"}}
            with again.cursor() as cursor:
                cursor.execute(
                    "SELECT current_setting('transaction_read_only'), current_setting('statement_timeout')"
                )
                assert cursor.fetchone() == ("off", "0")
        finally:
            again.close()
            again.close_pool()

    def test_a_query_that_does_not_end_is_stopped(self) -> None:
        forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        if connection.vendor == "postgresql":
            forever = "SELECT pg_sleep(60)"
        watch = made(SqlCheck, QUERY=forever, LOOK_SECONDS=0.5)
        began = time.monotonic()
        with pytest.raises(Exception, match="interrupt|timeout"):
            watch().look(view(), {})
        assert time.monotonic() - began < 50

    def test_a_faulty_setting_is_named(self) -> None:
        (fault,) = watch_faults(made(SqlCheck, QUERY=" "))
        assert "QUERY is missing" in fault.message
        (fault,) = watch_faults(made(SqlCheck, QUERY="SELECT 1", ALIAS="warehouse"))
        assert "'warehouse' is no database" in fault.message and fault.hint == "Use one of: default."


class Site(ThreadingHTTPServer):
    """Answers every request with its `answer`: status, type and body."""

    daemon_threads = True
    answer = (503, "text/plain", b"starting")


class Page(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        status, kind, body = self.server.answer
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def site() -> Iterator[Site]:
    server = Site(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


class TestHttp:
    def at(self, server: Site, **attributes: Any) -> type[HttpCheck]:
        url = f"http://127.0.0.1:{server.server_address[1]}/health"
        return made(HttpCheck, **{"URL": url, "ALLOW_PRIVATE": ["127.0.0.1"], **attributes})

    def test_it_is_over_when_status_and_text_are_there(self, site: Site) -> None:
        watch = self.at(site, CONTAINS="ready")
        found = watch().look(view(), {})
        assert (found.is_over, found.memory) == (False, {"last": "503 Service Unavailable"})
        site.answer = (200, "text/plain", b"not yet")
        assert watch().look(view(), {}).is_over is False
        site.answer = (200, "text/plain", b"ready since noon")
        found = watch().look(view(), {})
        assert (found.is_over, found.payload) == (True, {"status": 200, "text": "ready since noon"})

    def test_without_a_text_to_find_any_type_will_do(self, site: Site) -> None:
        site.answer = (200, "image/png", b"\x89PNG\x00")
        assert self.at(site)().look(view(), {}).is_over is True

    def test_a_server_that_cannot_be_reached_does_not_fulfil_it_yet(self, site: Site) -> None:
        watch = self.at(site)
        site.shutdown()
        site.server_close()
        found = watch().look(view(), {})
        assert found.is_over is False and "no connection" in str(found.memory)

    def test_a_private_address_that_was_not_opened_is_refused_and_so_a_failure(self, site: Site) -> None:
        watch = self.at(site, ALLOW_PRIVATE=())
        seen = limited.first_memory(watch, view(), go_on)
        assert seen.failure is None
        assert limited.look(watch, view(), {}, go_on).failure == "InvalidInput"

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"URL": "health"}, "URL"),
            ({"ALLOWED_HOSTS": ["http://x"]}, "allowed_hosts"),
            ({"ALLOW_PRIVATE": ["*.x"]}, "allow_private"),
        ],
    )
    def test_a_faulty_setting_is_named(self, wrong: dict[str, Any], said: str) -> None:
        (fault,) = watch_faults(made(HttpCheck, **{"URL": "https://example.com/", **wrong}))
        assert said in fault.message


class TestLimited:
    """One that raises, hangs or says what cannot be kept has failed; nothing of it gets out but the type."""

    def failing(self, look: Callable[[Any, Any, Any], Any], **attributes: Any) -> type[BaseWatch]:
        return made(BaseWatch, **{"look": look, "LOOK_SECONDS": 0.3, **attributes})

    def test_what_it_raises_is_its_failure(self) -> None:
        def look(self: Any, view: Any, memory: Any) -> Look:
            raise LookupError("password=hunter22")

        assert limited.look(self.failing(look), view(), {}, go_on) == limited.Seen(failure="LookupError")

    def test_one_that_hangs_is_left_behind_and_not_begun_again_beside_itself(self) -> None:
        free, calls = threading.Event(), []

        def look(self: Any, view: Any, memory: Any) -> Look:
            calls.append(threading.get_ident())
            free.wait(30)
            return Look(True)

        watch = self.failing(look)
        assert limited.look(watch, view(), {}, go_on).failure == "TimeoutError"
        assert limited.look(watch, view(), {}, go_on).failure == "TimeoutError"
        assert len(calls) == 1
        free.set()
        assert eventually(lambda: limited.look(watch, view(), {}, go_on).is_over)

    def test_a_run_that_must_stop_does_not_wait_for_it(self) -> None:
        free = threading.Event()

        def look(self: Any, view: Any, memory: Any) -> Look:
            free.wait(30)
            return Look(True)

        with pytest.raises(RunCancelled):
            limited.look(self.failing(look, LOOK_SECONDS=30), view("stopped"), {}, lambda: True)
        free.set()

    @pytest.mark.parametrize(
        "found", [Look(False, memory={"x": "x" * 9_000}), Look(True, payload={1, 2}), None]
    )
    def test_what_cannot_be_kept_is_its_failure(self, found: Any) -> None:
        watch = self.failing(lambda self, view, memory: found)
        assert limited.look(watch, view(), {}, go_on).failure in {"ValueError", "TypeError", "AttributeError"}

    def test_a_beginning_that_failed_is_made_up_for(self) -> None:
        class Counting(BaseWatch):
            NAME, DESCRIPTION = "counting", "Counts."

            def begin(self, view: View) -> dict[str, Any]:
                return {"from": 7}

            def look(self, view: View, memory: dict[str, Any]) -> Look:
                return Look(memory["from"] == 7)

        first = limited.look(Counting, view(), None, go_on)
        assert (first.is_over, first.memory) == (False, {"from": 7})
        assert limited.look(Counting, view(), first.memory, go_on).is_over is True
