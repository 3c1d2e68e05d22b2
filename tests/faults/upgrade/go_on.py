"""Goes on with what an older version left: `python -m tests.faults.upgrade.go_on DOCUMENT`.

Brings an empty database to the older version's migrations, puts the rows of the document there, applies
today's migrations and runs every execution to its end. Prints what came of each, as JSON.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(document: str) -> None:
    import django

    django.setup()
    left = json.loads(Path(document).read_text())
    _restore(left)
    print(json.dumps({name: _end(execution) for name, execution in left["executions"].items()} | _checked()))


def _restore(left: dict[str, Any]) -> None:
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    from tests.faults.app.agents import BILL

    call_command("migrate", "auth", verbosity=0)
    state = MigrationExecutor(connection).migrate([("agency", left["migration"])])
    for row in left["rows"]:
        model = state.apps.get_model(row["model"])
        columns = {field.name: field.attname for field in model._meta.concrete_fields}
        fields = {columns[name]: value for name, value in row["fields"].items() if name in columns}
        model(pk=row["pk"], **fields).save(force_insert=True)
    _count_on()
    Path(os.environ[BILL]).write_text("".join(f"{line}\n" for line in left["bill"]))
    call_command("migrate", verbosity=0)


def _count_on() -> None:
    """Rows that were put there with their numbers have not moved the sequences."""
    from django.core.management.color import no_style
    from django.db import connection

    from agency import models

    tables = [getattr(models, name) for name in ("Event", "Iteration", "Step", "Message")]
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), tables):
            cursor.execute(statement)


def _end(execution_id: str) -> dict[str, Any]:
    from agency.runtime import sweep
    from agency.testing import run_until_parked

    sweep.recover()
    done = run_until_parked(execution_id)
    return {
        "status": done.status,
        "output": done.output,
        "ledger": list(done.iterations.order_by("n").values_list("n", "verdict", "feedback")),
    }


def _checked() -> dict[str, Any]:
    from agency.execution.invariants import violations
    from agency.runtime import conf
    from tests.faults.app.agents import BILL

    return {
        "violations": [str(broken) for broken in violations(conf.current().CLAIM_CAP)],
        "bill": Path(os.environ[BILL]).read_text().splitlines(),
    }


if __name__ == "__main__":
    main(sys.argv[1])
