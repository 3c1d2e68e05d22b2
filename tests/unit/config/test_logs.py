"""Log lines for programs: one JSON object each, with the execution that it is about."""

import io
import json
import logging
import uuid

import pytest

from agency.config.environment import log_format
from agency.config.logs import JsonLines
from agency.errors import ConfigurationError
from agency.redaction import safe_logger
from agency.runtime.console import Console
from agency.runtime.lifeline import ALIVE, beat


@pytest.fixture
def said():
    """`said()`: the lines that a safe logger wrote since the start of the test, read back."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonLines())
    log = safe_logger("tests.json_lines")
    log.addHandler(handler)
    yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    log.removeHandler(handler)


def test_a_line_carries_the_ids_that_its_writer_knew(said):
    claim = uuid.uuid4()
    extra = {"execution_id": "e1", "claim_id": claim, "fence": 3}
    logging.getLogger("tests.json_lines").warning("attempt %d begins", 1, extra=extra)
    logging.getLogger("tests.json_lines").warning("no more")
    full, bare = said()
    assert full.pop("time").endswith("+00:00")
    assert full == {
        "level": "WARNING",
        "logger": "tests.json_lines",
        "message": "attempt 1 begins",
        "execution_id": "e1",
        "claim_id": str(claim),
        "fence": 3,
    }
    assert set(bare) == {"time", "level", "logger", "message"}


def test_a_traceback_stays_one_line_and_holds_no_secret(said):
    try:
        raise ValueError("token=sk-abcdefghijklmnopqrstuvwxyz123456")
    except ValueError:
        logging.getLogger("tests.json_lines").exception("it broke")
    [line] = said()
    assert "ValueError" in line["error"]
    assert "abcdefghijklmnop" not in json.dumps(line)


def test_the_format_is_one_of_two():
    assert (log_format({}), log_format({"AGENCY_LOG_FORMAT": " JSON "})) == ("line", "json")
    with pytest.raises(ConfigurationError, match="AGENCY_LOG_FORMAT is 'xml'. Set it to one of line, json"):
        log_format({"AGENCY_LOG_FORMAT": "xml"})


def test_the_supervisor_passes_json_on_and_wraps_what_is_none(monkeypatch):
    monkeypatch.setenv("AGENCY_LOG_FORMAT", "json")
    out = io.StringIO()
    console = Console(out)
    console.say("worker", '{"message": "x"}')
    console.say("valkey", "Ready to accept connections")
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert first == {"message": "x"}
    assert second == {"logger": "valkey", "message": "Ready to accept connections"}


def test_a_sign_of_life_is_the_time_of_a_file_for_whoever_watches_that(monkeypatch, tmp_path):
    path = tmp_path / "alive"
    monkeypatch.setenv(ALIVE, str(path))
    beat()
    assert path.exists()
