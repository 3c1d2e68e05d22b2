"""`python -m tests.faults.naive`: runs the naive design under kills, a flush and long countdowns; prints JSON."""

import json
import sys

from tests.faults.naive.contrast import run

if __name__ == "__main__":
    found = run()
    json.dump(found, sys.stdout)
    sys.stdout.write("\n")
