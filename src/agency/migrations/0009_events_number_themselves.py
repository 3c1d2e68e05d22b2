"""Events take their numbers from the log, and an execution keeps neither the last one nor its size."""

from typing import Any

from django.db import migrations

COUNTED = {
    "postgresql": "octet_length(v.content::text)",
    "sqlite": "LENGTH(CAST(v.content AS BLOB))",
}


def count_anew(apps: Any, editor: Any) -> None:
    """What code before this one goes on from: it would give numbers anew that events have."""
    execution, event, blob = (
        editor.quote_name(apps.get_model("agency", name)._meta.db_table)
        for name in ("Execution", "Event", "Blob")
    )
    size = COUNTED[editor.connection.vendor]
    editor.execute(
        f"UPDATE {execution} SET "
        f"event_seq = (SELECT COALESCE(MAX(v.seq), 0) FROM {event} v WHERE v.execution_id = {execution}.id), "
        f"stored_bytes = (SELECT COALESCE(SUM({size}), 0) FROM {event} v WHERE v.execution_id = {execution}.id)"
        f" + (SELECT COALESCE(SUM(b.size), 0) FROM {blob} b WHERE b.execution_id = {execution}.id)"
    )


class Migration(migrations.Migration):

    dependencies = [
        ('agency', '0008_schedule_queue'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, count_anew),
        migrations.RemoveField(
            model_name='execution',
            name='event_seq',
        ),
        migrations.RemoveField(
            model_name='execution',
            name='stored_bytes',
        ),
    ]
