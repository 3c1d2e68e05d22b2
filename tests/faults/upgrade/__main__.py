"""`python -m tests.faults.upgrade REVISION`: go on today with what that revision leaves when it is killed.

Takes the revision's tree out of git, so it needs a clone with history. `--keep DOCUMENT` stores what the
revision left, which is how the documents beside this file were made.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
LONG_AGO = "2025-01-01T00:00:00Z"


def environ(tree: Path, home: Path, name: str) -> dict[str, str]:
    """The environment of a process that uses the code of `tree` and a database of its own in `home`."""
    return {
        **os.environ,
        "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}",
        "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
        "AGENCY_TEST_DB": "sqlite",
        "AGENCY_FAULTS_DATABASE": str(home / f"{name}.sqlite3"),
        "AGENCY_FAULTS_SETTINGS": json.dumps({"DEADLINE_SECONDS": None}),
        "AGENCY_TEST_BILL": str(home / f"{name}.bill"),
    }


def leave(revision: str, document: Path, home: Path) -> None:
    """Write what the revision leaves into `document`."""
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", revision], check=True, capture_output=True)
    tree = home / "tree"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tree, filter="data")
    (home / "old.bill").touch()
    script = str(Path(__file__).with_name("leave.py"))
    command = [sys.executable, script, str(document)]
    subprocess.run(command, cwd=tree, env=environ(tree, home, "old"), check=True)


def make_ageless(document: Path) -> None:
    """Have the claims of a document that is kept be lost on any machine, whatever its date."""
    left = json.loads(document.read_text())
    for row in left["rows"]:
        fields = row["fields"]
        if fields.get("claim_owner"):
            fields |= {"claim_owner": "elsewhere|1|1|aa", "lease_until": LONG_AGO}
        if fields.get("next_run_at"):
            fields["next_run_at"] = LONG_AGO
    document.write_text(json.dumps(left, indent=1) + "\n")


def go_on(document: Path, environ: dict[str, str]) -> dict[str, Any]:
    """What today's code makes of a document."""
    command = [sys.executable, "-m", "tests.faults.upgrade.go_on", str(document)]
    done = subprocess.run(command, cwd=ROOT, env=environ, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def faults(left: dict[str, Any], came: dict[str, Any]) -> list[str]:
    """What is wrong with what came of a document; empty if nothing is."""
    once = '{"a": "done"}'
    second = [[1, "retry", "Say 'done'. You jotted: x."], [2, "passed", None]]
    wanted = {
        "finished": ("finished", json.loads(once), [[1, "passed", None]]),
        "accepted": ("finished", json.loads(once), [[1, "passed", None]]),
        "cut": ("finished", {"b": "done"}, second),
    }
    found = [
        f"{name}: {came[name]} instead of {want}"
        for name, want in wanted.items()
        if tuple(came[name].values()) != want
    ]
    # Nobody knows what came of the call that must not be repeated: a person is asked.
    if came["unsafe"]["status"] != "interrupted":
        found.append(f"unsafe: {came['unsafe']}")
    new = came["bill"][len(left["bill"]) :]
    # Of what is still to do: the accepted one's answer, the cut call, and the answer after it.
    if [line.split()[0] for line in new] != ["model", "hang", "model"]:
        found.append(f"the bill grew by {new}")
    return found + came["violations"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.upgrade")
    parser.add_argument("revision")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agency-upgrade-") as directory:
        home = Path(directory)
        document = given.keep.resolve() if given.keep else home / "left.json"
        leave(given.revision, document, home)
        if given.keep:
            make_ageless(document)
        (home / "new.bill").touch()
        came = go_on(document, environ(ROOT, home, "new"))
        found = faults(json.loads(document.read_text()), came)
    for line in found:
        print(line)
    print(f"{given.revision}: {'not as it must be' if found else 'goes on, and nothing is paid twice'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
