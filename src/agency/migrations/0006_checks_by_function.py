"""On PostgreSQL the long CHECKs become functions of the same meaning and under the same names.

PostgreSQL reads a CHECK's whole expression anew for every statement that writes its table, whatever the
statement changes; of a function it reads a call, and compiles the rest once a connection.
"""

from typing import Any

from django.db import migrations

LONG = {
    "Execution": (
        *("status", "loop_status", "one_situation", "claim_whole", "finished_at", "failure_code"),
        *("cancel_asked", "loop_agrees", "has_order", "idempotency_whole"),
    ),
    "Event": ("kind",),
    "Step": ("status", "effect", "done_at"),
    "Message": ("role",),
}
FIND = """
    SELECT pg_get_expr(c.conbin, c.conrelid), a.attname, format_type(a.atttypid, NULL)
    FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
    WHERE c.conrelid = %s::regclass AND c.conname = %s AND c.contype = 'c' ORDER BY a.attnum
"""


def call(apps: Any, editor: Any, long: dict[str, tuple[str, ...]] = LONG) -> None:
    if editor.connection.vendor != "postgresql":
        return
    for model, names in long.items():
        table = editor.quote_name(apps.get_model("agency", model)._meta.db_table)
        changes: list[str] = []
        for name in (f"agency_{model.lower()}_{name}" for name in names):
            with editor.connection.cursor() as cursor:
                cursor.execute(FIND, [table, name])
                found = cursor.fetchall()
            columns = [(editor.quote_name(column), kind) for _, column, kind in found]
            takes = ", ".join(f"{column} {kind}" for column, kind in columns)
            editor.execute(
                f"CREATE OR REPLACE FUNCTION {name}_holds({takes}) RETURNS boolean LANGUAGE plpgsql IMMUTABLE "
                f"AS $holds$ BEGIN RETURN {found[0][0]}; END $holds$",
                params=None,
            )
            given = ", ".join(column for column, _ in columns)
            changes += [f"DROP CONSTRAINT {name}", f"ADD CONSTRAINT {name} CHECK ({name}_holds({given}))"]
        editor.execute(f"ALTER TABLE {table} {', '.join(changes)}", params=None)


def write_out(apps: Any, editor: Any, long: dict[str, tuple[str, ...]] = LONG) -> None:
    if editor.connection.vendor != "postgresql":
        return
    for model, names in long.items():
        of_rows = apps.get_model("agency", model)
        wanted = {f"agency_{model.lower()}_{name}" for name in names}
        for constraint in of_rows._meta.constraints:
            if constraint.name in wanted:
                editor.remove_constraint(of_rows, constraint)
                editor.add_constraint(of_rows, constraint)
                editor.execute(f"DROP FUNCTION {constraint.name}_holds", params=None)


class Migration(migrations.Migration):
    dependencies = [("agency", "0005_journal_bodies")]

    operations = [migrations.RunPython(call, write_out)]
