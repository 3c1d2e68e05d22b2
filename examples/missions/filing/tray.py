"""The office: a directory of papers (text files) and one of records (a JSON file for each filed paper).

They are files under `AGENCY_HOME`, so every process and every later run sees the same. A record appears whole
or not at all, and the first one stays.
"""

import json
import os
import uuid
from pathlib import Path
from typing import Any

from agency.runtime.home import Home


class Filed(ValueError):
    """There is a record of this paper already, made by another call."""


def office() -> Path:
    return Home.of(os.environ).path / "filing"


def put(paper: str, text: str) -> None:
    """Lay a paper on the tray. One that was filed before is new again."""
    tray = office() / "tray"
    tray.mkdir(parents=True, exist_ok=True)
    _record(paper).unlink(missing_ok=True)
    (tray / f"{paper}.txt").write_text(text, encoding="utf-8")


def papers() -> list[str]:
    """The names of all papers, filed or not."""
    return sorted(path.stem for path in (office() / "tray").glob("*.txt"))


def unfiled() -> list[str]:
    """The papers that have no record yet, in the order in which they are to be filed."""
    return [paper for paper in papers() if not _record(paper).exists()]


def text_of(paper: str) -> str:
    return (office() / "tray" / f"{paper}.txt").read_text(encoding="utf-8").strip()


def record_of(paper: str) -> dict[str, Any] | None:
    """What was filed of a paper: `kind`, `name`, and the `key` of the call that filed it."""
    try:
        return json.loads(_record(paper).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def file(paper: str, record: dict[str, str], key: str) -> None:
    """Keep the record. The same `key` again changes nothing; another one is refused."""
    target = _record(paper)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(f".{uuid.uuid4().hex}")
    draft.write_text(json.dumps({**record, "key": key}, ensure_ascii=False) + "\n", encoding="utf-8")
    try:
        os.link(draft, target)
    except FileExistsError:
        if (record_of(paper) or {}).get("key") != key:
            raise Filed(f"{paper} is filed already") from None
    finally:
        draft.unlink()


def _record(paper: str) -> Path:
    return office() / "cabinet" / f"{paper}.json"
