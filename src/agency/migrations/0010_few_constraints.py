"""On PostgreSQL the tables that each step writes have fewer constraints: no references, no bare signs.

PostgreSQL asks for the other row and reads each CHECK anew with every statement; what they guard follows
from the one statement that writes these rows.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


class Alter(migrations.AlterField):
    """SQLite checks for next to nothing, and would have to copy the table for each of these."""

    def database_forwards(self, app_label: str, editor: Any, from_state: Any, to_state: Any) -> None:
        if editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, editor, from_state, to_state)

    def database_backwards(self, app_label: str, editor: Any, from_state: Any, to_state: Any) -> None:
        self.database_forwards(app_label, editor, from_state, to_state)


class Migration(migrations.Migration):

    dependencies = [
        ('agency', '0009_events_number_themselves'),
    ]

    operations = [
        Alter(
            model_name='event',
            name='execution',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='agency.execution'),
        ),
        Alter(
            model_name='event',
            name='generation',
            field=models.IntegerField(default=1),
        ),
        Alter(
            model_name='event',
            name='iteration',
            field=models.IntegerField(default=0),
        ),
        Alter(
            model_name='event',
            name='seq',
            field=models.BigIntegerField(),
        ),
        Alter(
            model_name='event',
            name='step',
            field=models.IntegerField(default=0),
        ),
        Alter(
            model_name='message',
            name='event_seq',
            field=models.BigIntegerField(null=True),
        ),
        Alter(
            model_name='message',
            name='iteration',
            field=models.IntegerField(default=0),
        ),
        Alter(
            model_name='message',
            name='seq',
            field=models.BigIntegerField(),
        ),
        Alter(
            model_name='message',
            name='thread',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='agency.thread'),
        ),
        Alter(
            model_name='step',
            name='event_seq',
            field=models.BigIntegerField(null=True),
        ),
        Alter(
            model_name='step',
            name='execution',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='agency.execution'),
        ),
    ]
