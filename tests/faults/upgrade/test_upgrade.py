"""A database and a journal in flight that an older version has left go on under today's code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.upgrade.__main__ import ROOT, environ, faults, go_on

DOCUMENTS = sorted(Path(__file__).parent.glob("*.json"))
COUNTED = """
import json
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT id, event_seq, stored_bytes FROM agency_execution ORDER BY id")
    rows = cursor.fetchall()
    cursor.execute("SELECT execution_id, MAX(seq) FROM agency_event GROUP BY 1 ORDER BY 1")
    newest = [[str(key), seq] for key, seq in cursor.fetchall()]
print(json.dumps([[[str(key), seq] for key, seq, _ in rows], newest, min(size for *_, size in rows)]))
"""


@pytest.mark.e2e
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_what_an_older_version_left_goes_on_and_nothing_is_paid_twice(
    document: Path, database_url: str, tmp_path: Path
) -> None:
    env = on(database_url, tmp_path)
    assert faults(json.loads(document.read_text()), go_on(document, env)) == []


@pytest.mark.e2e
def test_code_that_counts_events_in_the_row_can_be_gone_back_to(database_url: str, tmp_path: Path) -> None:
    env = on(database_url, tmp_path)
    go_on(DOCUMENTS[0], env)
    django(env, "migrate", "agency", "0008_schedule_queue", "--verbosity=0")
    counted, newest, size = json.loads(django(env, "shell", "--verbosity=0", "-c", COUNTED))
    assert counted == newest
    assert size > 0
    django(env, "migrate", "--verbosity=0")


def on(database_url: str, home: Path) -> dict[str, str]:
    """The environment of today's code on this test's database."""
    (home / "new.bill").touch()
    env = environ(ROOT, home, "new")
    if server := os.environ.get("AGENCY_TEST_PG_URL"):
        name = urlsplit(database_url).path.lstrip("/")
        env |= {"AGENCY_TEST_DB": "postgres", "AGENCY_TEST_PG_URL": server, "AGENCY_FAULTS_DATABASE": name}
    return env


def django(env: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "django", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_the_documents_hold_a_run_that_was_killed_in_its_second_attempt() -> None:
    assert DOCUMENTS
    for document in DOCUMENTS:
        left = json.loads(document.read_text())
        rows = {row["pk"]: row["fields"] for row in left["rows"] if row["model"] == "agency.execution"}
        cut = rows[left["executions"]["cut"]]
        assert (cut["status"], cut["iteration"]) == ("in_progress", 1)
        assert cut["claim_id"] is not None
