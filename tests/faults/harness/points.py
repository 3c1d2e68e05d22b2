"""F0: the fail points, each alone, as the test suite has them; what pytest counted are the figures."""

import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

TESTS = "tests/faults/points"


def run(backend: str, home: Path) -> dict[str, Any]:
    """The entry of the report for a database's fail points."""
    counts = home / "points.xml"
    command = [sys.executable, "-m", "pytest", TESTS, "--db", backend, "-q", f"--junit-xml={counts}"]
    began = time.monotonic()
    with (home / "run.log").open("wb") as log:
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    if not counts.exists():
        return {"missed": [f"the fail points did not run, see {home / 'run.log'}"], "exercised": {}}
    suite = ElementTree.parse(counts).getroot()[0]
    ran = int(suite.get("tests", "0")) - int(suite.get("skipped", "0"))
    broken = int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
    missed = [f"{broken} of {ran} fail points"] if broken or not ran or code else []
    seconds = round(time.monotonic() - began, 1)
    return {"missed": missed, "exercised": {"fail_point": ran}, "seconds": seconds}
