"""The filing clerk's tools, the tray and the check: what they do, twice, and with what they cannot take."""

from pathlib import Path

import pytest
from missions.filing import tray
from missions.filing.agents import FilingClerk
from missions.filing.missions import ORDER, AllPapersFiled
from missions.filing.tools import file_paper, next_paper
from records.record import Kind

from agency.agent import Effect, ToolCallInfo
from agency.execution import declaration
from agency.mission.completion import ClaimedCompletion
from agency.mission.completion.declared import check_faults

NOTE = "Minutes of 5 May 2025, taken by Lia Moreno."
BILL = "Blue Door Ltd. INVOICE 7-71. To pay 100.00"


@pytest.fixture(autouse=True)
def two_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_HOME", str(tmp_path))
    tray.put("a-note", NOTE)
    tray.put("b-bill", BILL)


def file(paper: str, kind: Kind, name: str, key: str = "key") -> str:
    return file_paper.function(paper=paper, kind=kind, name=name, call=ToolCallInfo("1", key))


def missing() -> str | None:
    claimed = ClaimedCompletion("1", "File", "File all.", 1, "All is filed.", "All is filed.", {})
    return AllPapersFiled().check(claimed)


def test_papers_come_one_by_one_until_the_tray_is_empty() -> None:
    assert next_paper.function() == f"paper: a-note\n\n{NOTE}"
    assert file("a-note", Kind.MEETING_NOTE, "Lia Moreno").endswith("Still on the tray: b-bill.")
    assert next_paper.function() == f"paper: b-bill\n\n{BILL}"
    assert file("b-bill", Kind.INVOICE, "blue door ltd", "other").endswith("all 2 papers are filed.")
    assert next_paper.function() == "The tray is empty: all 2 papers are filed."
    assert tray.record_of("b-bill") == {"kind": "invoice", "name": "blue door ltd", "key": "other"}


def test_the_same_call_again_changes_nothing() -> None:
    said = file("a-note", Kind.MEETING_NOTE, "Lia Moreno")
    assert file("a-note", Kind.MEETING_NOTE, "Lia Moreno") == said


def test_the_last_call_again_says_the_same_and_another_one_has_nothing_to_file() -> None:
    file("a-note", Kind.MEETING_NOTE, "Lia Moreno")
    said = file("b-bill", Kind.INVOICE, "Blue Door Ltd", "last")
    assert file("b-bill", Kind.INVOICE, "Blue Door Ltd", "last") == said
    assert file("c-none", Kind.CV, "Nobody", "other") == "The tray is empty: all 2 papers are filed."


def test_another_call_does_not_replace_a_record() -> None:
    file("a-note", Kind.MEETING_NOTE, "Lia Moreno")
    with pytest.raises(tray.Filed, match="a-note is filed already"):
        file("a-note", Kind.CV, "Lia Moreno", "other")
    assert (tray.record_of("a-note") or {})["kind"] == "meeting_note"
    assert [path.name for path in (tray.office() / "cabinet").iterdir()] == ["a-note.json"]


def test_a_paper_that_is_laid_on_the_tray_again_is_new() -> None:
    file("a-note", Kind.MEETING_NOTE, "Lia Moreno")
    tray.put("a-note", NOTE)
    assert tray.unfiled() == ["a-note", "b-bill"]


@pytest.mark.parametrize("paper", ["c-none", "../a-note", ""])
def test_only_papers_of_the_tray_can_be_filed(paper: str) -> None:
    with pytest.raises(ValueError, match="there is no paper"):
        file(paper, Kind.CV, "Lia Moreno")
    assert not (tray.office() / "cabinet").exists()


def test_a_name_that_is_not_in_the_paper_is_not_filed() -> None:
    with pytest.raises(ValueError, match="'Tom Lee' is not in a-note; copy the name as printed"):
        file("a-note", Kind.MEETING_NOTE, "Tom Lee")
    assert tray.unfiled() == ["a-note", "b-bill"]


def test_only_an_invoice_needs_a_persons_agreement() -> None:
    asking = {kind for kind in Kind if file_paper.needs_confirmation({"kind": kind.value})}
    assert asking == {Kind.INVOICE}
    assert file_paper.needs_confirmation({})  # what cannot be judged is asked about
    assert not next_paper.may_ask


def test_what_was_filed_is_the_last_word_of_a_round() -> None:
    assert file_paper.return_direct and not next_paper.return_direct


def test_a_crash_may_repeat_every_call() -> None:
    assert (next_paper.effect, file_paper.effect) == (Effect.READ, Effect.IDEMPOTENT)


def test_the_check_names_what_is_left_and_believes_the_cabinet_alone() -> None:
    assert missing() == "Call next_paper and file the paper; these are left: a-note, b-bill."
    file("a-note", Kind.MEETING_NOTE, "Lia Moreno")
    assert missing() == "Call next_paper and file the paper; these are left: b-bill."
    file("b-bill", Kind.INVOICE, "Blue Door Ltd")
    assert missing() is None


def test_agent_and_check_are_declared_without_fault() -> None:
    assert list(declaration.agent_faults(FilingClerk)) == []
    assert check_faults(AllPapersFiled) == []
    assert ORDER["completion_checks"] == ["all-papers-filed"]
