"""`python -m tests.faults.naive`: runs the naive design under kills, a flush and countdowns; prints JSON."""

import json
import sys

from tests.faults.naive.contrast import run

if __name__ == "__main__":
    json.dump(run(), sys.stdout)
    sys.stdout.write("\n")
