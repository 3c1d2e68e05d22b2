"""`agency run`: one execution from the terminal to its end, in this process when no service runs here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agency.models import ConfiguredAgent, Execution

Agency = Callable[..., Any]
SCRIPTS = "scripted:tests.integration.cli.scripts"


@pytest.mark.django_db(transaction=True)
def test_run_prints_the_output_and_says_where_it_ran(agency: Agency, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_MODEL", f"{SCRIPTS}:shelves")
    called = agency("run", "shelve-books", stdin="{}")
    assert called.code == 0, called.err
    assert json.loads(called.out) == {"shelved": 3}
    assert "this process" in called.err
    assert "agency trace" in called.err
    row = Execution.objects.get()
    assert (row.status, row.owner.get_username(), row.agent.name) == ("finished", "agency", "Librarian")


@pytest.mark.django_db(transaction=True)
def test_a_failure_says_why_and_is_exit_code_1(agency: Agency, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_MODEL", f"{SCRIPTS}:mumbles")
    called = agency("run", "shelve-books", stdin="{}")
    assert called.code == 1
    assert called.out == ""
    assert "max_retries_exceeded" in called.err


@pytest.mark.django_db(transaction=True)
def test_as_json_it_prints_the_whole_execution_and_nothing_else(
    agency: Agency, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENCY_MODEL", f"{SCRIPTS}:shelves")
    (tmp_path / "input.json").write_text("{}")
    called = agency("run", "shelve-books", "--input", str(tmp_path / "input.json"), "--json")
    assert json.loads(called.out)["attempts"][0]["verdict"] == "passed"


@pytest.mark.parametrize(
    ("stdin", "said"),
    [("{", "is not JSON"), ("[]", "must hold a JSON object"), ("", "is not JSON"), ('{"a": 1}', "input.a")],
)
@pytest.mark.django_db
def test_input_that_does_not_fit_is_refused_without_a_row(agency: Agency, stdin: str, said: str) -> None:
    called = agency("run", "shelve-books", stdin=stdin)
    assert called.code == 2
    assert said in called.err
    assert not Execution.objects.exists()


@pytest.mark.django_db
def test_a_file_that_is_not_there_is_one_sentence(agency: Agency) -> None:
    called = agency("run", "shelve-books", "--input", "nowhere.json")
    assert called.code == 2
    assert called.err.strip() == "Error: No such file or directory: nowhere.json"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("no-such:model", "write provider:model"),
        ("openai:gpt-5-mini", "OPENAI_API_KEY is not set"),
        ("scripted:no.such:model", "cannot be loaded"),
        ("local:/no/such.gguf", "/no/such.gguf"),
    ],
)
@pytest.mark.django_db
def test_a_model_that_cannot_be_had_is_one_sentence_and_no_row(
    agency: Agency, monkeypatch: pytest.MonkeyPatch, model: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("AGENCY_MODEL", model)
    called = agency("run", "shelve-books", stdin="{}")
    assert called.code == 1
    assert said in called.err
    assert len(called.err.strip().splitlines()) == 1
    assert not Execution.objects.exists()


@pytest.mark.django_db
def test_an_unknown_type_lists_the_known(agency: Agency) -> None:
    called = agency("run", "no-such", stdin="{}")
    assert called.code == 2
    assert "shelve-books" in called.err


@pytest.mark.django_db
def test_an_unknown_agent_lists_the_known(agency: Agency) -> None:
    assert "none" in agency("run", "shelve-books", "--agent", "Bob", stdin="{}").err
    assert not ConfiguredAgent.objects.exists()


@pytest.mark.django_db
def test_an_agent_of_another_type_is_refused(agency: Agency, execution: Callable[..., Any]) -> None:
    called = agency("run", "shelve-books", "--agent", execution().agent.name, stdin="{}")
    assert called.code == 2
    assert "librarian" in called.err


@pytest.mark.django_db
def test_it_can_be_ordered_in_another_users_name(agency: Agency, django_user_model: Any) -> None:
    django_user_model.objects.create_user("ada")
    called = agency("run", "shelve-books", "--user", "ada", "--no-wait", "--json", stdin="{}")
    assert Execution.objects.get(pk=json.loads(called.out)["id"]).owner.get_username() == "ada"


@pytest.mark.django_db
def test_without_waiting_only_the_id_is_printed(agency: Agency) -> None:
    called = agency("run", "shelve-books", "--no-wait", stdin="{}")
    assert Execution.objects.get(pk=called.out.strip()).status == "pending"
