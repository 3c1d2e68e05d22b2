"""Runs the whole suite: everything on SQLite, then what touches the database once more on PostgreSQL.

Arguments go to pytest. Both runs happen whatever the first one gave; either failure is the suite's.
"""

import os
import subprocess
import sys
import tempfile


def main(arguments: list[str]) -> int:
    with tempfile.NamedTemporaryFile(prefix="agency-counts-") as counts:
        environment = {**os.environ, "AGENCY_TEST_COUNTS": counts.name}
        codes: list[int] = []
        for database in ("sqlite", "postgres"):
            command = [sys.executable, "-m", "pytest", "--db", database, *arguments]
            print(f"\nThe suite on {database}", flush=True)
            codes.append(subprocess.run(command, env=environment, check=False).returncode)
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
