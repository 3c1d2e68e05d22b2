"""Writes what an older version leaves when its workers are killed. Run by path, in that version's tree.

`python leave.py DOCUMENT` takes a new database (`AGENCY_FAULTS_DATABASE`, SQLite) through four executions:
finished, accepted, killed in its second attempt, and killed in a call that must not be repeated.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CUT = 'jot x; {"a": 1} | jot y; hang; {"b": "done"}'
TASKS = {
    "finished": '{"a": "done"}',
    "accepted": '{"a": "done"}',
    "cut": CUT,
    "unsafe": 'pay 5; {"a": "done"}',
}
MODELS = ("ConfiguredAgent", "Thread", "Execution", "Iteration", "Event", "Step", "Message")
WITHIN = 60.0


def main(document: str) -> None:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    ids = _submitted()
    for name in ("finished", "cut", "unsafe"):
        _run(ids[name], until={"cut": "hang", "unsafe": "pay"}.get(name))
    Path(document).write_text(json.dumps(_written(ids), indent=1, default=str) + "\n")


def _submitted() -> dict[str, str]:
    from django.contrib.auth import get_user_model

    from agency.execution import service
    from agency.models import ConfiguredAgent

    owner = get_user_model().objects.create(username="somebody")
    agent = ConfiguredAgent.objects.create(agent_key="fault-clerk", name="clerk", owner=owner)
    made = {name: service.submit("fault-errand", agent, {"task": task}) for name, task in TASKS.items()}
    return {name: str(one.execution.pk) for name, one in made.items()}


def _run(execution: str, until: str | None) -> None:
    """Run it in a process of its own, and kill that when the bill says that it has come to `until`."""
    from tests.faults.app.agents import BILL

    process = subprocess.Popen([sys.executable, "-m", "tests.faults.claimer", execution])
    end = time.monotonic() + WITHIN
    while process.poll() is None and not (until and until in Path(os.environ[BILL]).read_text()):
        if time.monotonic() > end:
            process.kill()
            raise SystemExit(f"execution {execution} did not come to {until!r} within {WITHIN:g} s")
        time.sleep(0.02)
    process.kill()
    process.wait()


def _written(ids: dict[str, str]) -> dict[str, Any]:
    from django.contrib.auth import get_user_model
    from django.core import serializers
    from django.db.migrations.recorder import MigrationRecorder

    from agency import models
    from tests.faults.app.agents import BILL

    rows = [*get_user_model().objects.all()]
    for name in MODELS:
        rows += getattr(models, name).objects.order_by("pk")
    applied = MigrationRecorder.Migration.objects.filter(app="agency").order_by("id")
    return {
        "migration": applied.values_list("name", flat=True).last(),
        "executions": ids,
        "bill": Path(os.environ[BILL]).read_text().splitlines(),
        "rows": serializers.serialize("python", rows),
    }


if __name__ == "__main__":
    main(sys.argv[1])
