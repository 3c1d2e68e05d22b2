"""The demo's table can be read on a narrow and on a wide terminal."""

import io

import pytest
from rich.console import Console

from agency.cli import report

TOLD = {
    "model": "local:default",
    "setup_s": 1.0,
    "first_finished_s": 2.0,
    "total_s": 3.0,
    "executions": [
        {
            "document": "invoice-office-supplies",
            "status": "finished",
            "output": {"kind": "invoice", "name": "Harbour Office Supplies Ltd", "vendor_id": None},
            "right": True,
            "attempts": 1,
            "failure_code": None,
            "failure_summary": None,
            "tokens": 3211,
            "seconds": 27.4,
        }
    ],
}


@pytest.mark.parametrize("width", [80, 140])
def test_document_and_result_are_shown_whole(width: int) -> None:
    out = Console(file=io.StringIO(), width=width)
    report.show(out, TOLD)
    text = out.file.getvalue()
    assert "kind invoice, name Harbour Office Supplies Ltd" in text
    assert all(word in text for word in ("invoice-office-supplies", "✓ finished", "3,211", "27.4"))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "1 of 1 documents right" in text
