"""The demo's results: as a table for people and as `report.json` for anyone who wants to check them."""

import json
import os
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agency.cli.output import duration, status_text, tokens_of

_WIDE = 120
"""Columns from which the results fit beside the figures."""


def build(
    model: str,
    expected: dict[str, dict[str, Any]],
    ended: dict[str, dict[str, Any]],
    *,
    setup_s: float,
    total_s: float,
) -> dict[str, Any]:
    """The report: `expected` outputs and `ended` executions (as the API shows them) by document."""
    is_right: Callable[[Any, Any], bool] = import_module("records.compare").is_right
    submitted = min(_moment(row["created_at"]) for row in ended.values())
    finished = [_moment(row["finished_at"]) for row in ended.values() if row["status"] == "finished"]
    first = (min(finished) - submitted).total_seconds() if finished else None
    return {
        "model": model,
        "setup_s": round(setup_s, 1),
        "first_finished_s": None if first is None else round(first, 1),
        "total_s": round(total_s, 1),
        "executions": [
            {
                "document": document,
                "id": row["id"],
                "status": row["status"],
                "output": row["output"],
                "right": row["status"] == "finished" and is_right(row["output"], expected[document]),
                "attempts": row["current_iteration"],
                "failure_code": row["failure_code"],
                "failure_summary": row["failure_summary"],
                "tokens": tokens_of(row["usage"]),
                "seconds": seconds(row["started_at"], row["finished_at"]),
            }
            for document, row in ended.items()
        ],
    }


def mission(ended: dict[str, Any], documents: list[dict[str, Any]], confirmed: int) -> dict[str, Any]:
    """The report's part on a mission: its `ended` execution as the API shows it, its documents, and how many
    calls a person's agreement was given to."""
    return {
        "id": ended["id"],
        "name": ended["mission_name"],
        "status": ended["status"],
        "loop_status": ended["loop_status"],
        "iterations": ended["iteration"],
        "max_iterations": ended["max_iterations"],
        "decision": ended["loop_decision"],
        "failure_code": ended["failure_code"],
        "failure_summary": ended["failure_summary"],
        "documents": documents,
        "confirmed": confirmed,
        "tokens": tokens_of(ended["usage"]),
        "seconds": seconds(ended["started_at"], ended["finished_at"]),
    }


def show_mission(out: Console, told: dict[str, Any]) -> None:
    """The mission's end in a few lines."""
    filed = [_filed(one) for one in told["documents"] if one["filed"]]
    out.print()
    out.print(
        Text.assemble(
            ("Mission ", "bold"),
            (told["name"], "bold"),
            "  ",
            status_text(told["status"]),
            f" ({told['loop_status'].replace('_', ' ')}) after {told['iterations']} of at most "
            f"{told['max_iterations']} rounds in {duration(told['seconds'])}, {told['tokens']:,} tokens, "
            f"{told['confirmed']} confirmed.",
        )
    )
    checks = (told["decision"] or {}).get("checks") or {}
    verified = f" Verified by {', '.join(checks['passed'])}." if checks.get("passed") else ""
    out.print(f"Filed: {'; '.join(filed) or 'nothing'}.{verified}", markup=False)
    if told["failure_summary"]:
        out.print(Text(f"{told['failure_code']}: {told['failure_summary']}", "red"))


def _filed(document: dict[str, Any]) -> str:
    record = document["filed"]
    said = f"{document['document']} as {record['kind']} of {record['name']}"
    return said if document["right"] else f"{said} (wrong)"


def write(target: Path, report: dict[str, Any]) -> None:
    """Whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".draft")
    draft.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    os.replace(draft, target)


def show(out: Console, report: dict[str, Any]) -> None:
    """The table, with the results in it where the console is wide, else each on lines of its own."""
    rows = report["executions"]
    wide = out.width >= _WIDE
    table = Table(box=None, pad_edge=False, header_style="bold", title_style="bold", title_justify="left")
    for name, justify in (
        ("document", "left"),
        ("status", "left"),
        ("right", "left"),
        ("attempts", "right"),
        ("tokens", "right"),
        ("seconds", "right"),
        *((("result", "left"),) if wide else ()),
    ):
        table.add_column(name, justify=justify, overflow="fold" if name == "result" else "ellipsis")
    for row in rows:
        table.add_row(
            row["document"],
            status_text(row["status"]),
            Text("✓ right", "green") if row["right"] else Text("✗ no", "red" if row["output"] else "dim"),
            str(row["attempts"]),
            f"{row['tokens']:,}",
            f"{row['seconds']:.1f}" if row["seconds"] is not None else "–",
            *((Text(_result(row)),) if wide else ()),
        )
    out.print()
    out.print(table)
    if not wide:
        out.print()
        for row in rows:
            out.print(Text.assemble((row["document"], "bold"), f"  {_result(row)}"))
    right = sum(row["right"] for row in rows)
    out.print(
        f"\n{right} of {len(rows)} documents right, by {report['model']}; set up in "
        f"{duration(report['setup_s'])}, first finished after {duration(report['first_finished_s'])}, "
        f"all after {duration(report['total_s'])}."
    )


def _result(row: dict[str, Any]) -> str:
    if row["output"]:
        return ", ".join(f"{key} {value}" for key, value in row["output"].items() if value is not None)
    return ": ".join(part for part in (row["failure_code"], row["failure_summary"]) if part)


def seconds(start: str | None, end: str | None) -> float | None:
    """Seconds from one moment of the API to another, `None` while one of them is to come."""
    return round((_moment(end) - _moment(start)).total_seconds(), 1) if start and end else None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
