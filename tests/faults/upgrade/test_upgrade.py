"""A database and a journal in flight that an older version has left go on under today's code."""

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.upgrade.__main__ import ROOT, environ, faults, go_on

DOCUMENTS = sorted(Path(__file__).parent.glob("*.json"))


@pytest.mark.e2e
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_what_an_older_version_left_goes_on_and_nothing_is_paid_twice(
    document: Path, database_url: str, tmp_path: Path
) -> None:
    env = environ(ROOT, tmp_path, "new")
    if server := os.environ.get("AGENCY_TEST_PG_URL"):
        name = urlsplit(database_url).path.lstrip("/")
        env |= {"AGENCY_TEST_DB": "postgres", "AGENCY_TEST_PG_URL": server, "AGENCY_FAULTS_DATABASE": name}
    (tmp_path / "new.bill").touch()
    assert faults(json.loads(document.read_text()), go_on(document, env)) == []


def test_the_documents_hold_a_run_that_was_killed_in_its_second_attempt() -> None:
    assert DOCUMENTS
    for document in DOCUMENTS:
        left = json.loads(document.read_text())
        rows = {row["pk"]: row["fields"] for row in left["rows"] if row["model"] == "agency.execution"}
        cut = rows[left["executions"]["cut"]]
        assert (cut["status"], cut["iteration"]) == ("in_progress", 1)
        assert cut["claim_id"] is not None
