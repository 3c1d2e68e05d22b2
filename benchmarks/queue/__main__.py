"""Starts the servers and prints the figures as JSON, from a process that measures nothing else."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.queue import processes
from tests import servers


def main() -> None:
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.directory("agency-bench-"))
        broker = stack.enter_context(servers.valkey())
        if broker is None:
            print(json.dumps({}))
            return
        os.environ |= {
            "AGENCY_HOME": str(home / "home"),
            "AGENCY_DATABASE_URL": stack.enter_context(servers.postgres(durable=True)),
            "AGENCY_BROKER_URL": broker,
            "AGENCY_BENCH_LOG": str(home / "log"),
            "AGENCY_LOG_LEVEL": "WARNING",
            "DJANGO_SETTINGS_MODULE": "agency.config.settings",
        }
        subprocess.run([sys.executable, "-m", "django", "migrate", "-v", "0"], check=True)
        print(json.dumps(_measure(home)))


def _measure(home: Path) -> dict[str, float]:
    import django

    django.setup()
    from benchmarks.queue import answers, celery, hops, waiting

    log = processes.Log(home / "log")
    celery.app.finalize()
    return {**hops.measure(home, log), **answers.measure(home, log), **waiting.measure(home, log)}


if __name__ == "__main__":
    main()
