"""Missions: their rows, schedules and signals, and an execution's reference to one."""

import importlib
from typing import Any

import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.conf import settings
from django.db import migrations, models

checks = importlib.import_module("agency.migrations.0006_checks_by_function")
CHANGED = {"Execution": ("has_order",), "Event": ("kind",)}


def drop_functions(apps: Any, editor: Any) -> None:
    """Those of the two CHECKs that change; without a CHECK nothing uses them."""
    if editor.connection.vendor == "postgresql":
        for model, names in CHANGED.items():
            for name in names:
                editor.execute(f"DROP FUNCTION agency_{model.lower()}_{name}_holds", params=None)


def call(apps: Any, editor: Any) -> None:
    checks.call(apps, editor, CHANGED)


def write_out(apps: Any, editor: Any) -> None:
    checks.write_out(apps, editor, CHANGED)


class Migration(migrations.Migration):

    dependencies = [
        ('agency', '0006_checks_by_function'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Mission',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
                ('prompt', models.TextField()),
                ('loop_prompt', models.TextField(blank=True, null=True)),
                ('max_iterations', models.PositiveIntegerField(default=10)),
                ('loop_delay_seconds', models.PositiveIntegerField(default=0)),
                ('supervisor_model', models.CharField(blank=True, default='', max_length=300)),
                ('completion_checks', models.JSONField(blank=True, default=list)),
                ('limits', models.JSONField(blank=True, default=dict)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ('name', 'id'),
            },
        ),
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('cron', models.CharField(max_length=200)),
                ('time_zone', models.CharField(default='UTC', max_length=100)),
                ('overlap', models.CharField(default='skip', max_length=20)),
                ('catch_up', models.CharField(default='run_once', max_length=20)),
                ('is_paused', models.BooleanField(default=False)),
                ('next_slot_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ('created_at', 'id'),
            },
        ),
        migrations.CreateModel(
            name='ScheduleSlot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slot_at', models.DateTimeField()),
                ('outcome', models.CharField(max_length=20)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'ordering': ('schedule', 'slot_at'),
            },
        ),
        migrations.CreateModel(
            name='Signal',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('payload', models.JSONField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('consumed_iteration', models.PositiveIntegerField(null=True)),
            ],
            options={
                'ordering': ('execution', 'created_at', 'id'),
            },
        ),
        migrations.RunPython(migrations.RunPython.noop, call),
        migrations.RemoveConstraint(
            model_name='event',
            name='agency_event_kind',
        ),
        migrations.RemoveConstraint(
            model_name='execution',
            name='agency_execution_has_order',
        ),
        migrations.RunPython(drop_functions, migrations.RunPython.noop),
        migrations.AddField(
            model_name='execution',
            name='iteration_fence',
            field=models.PositiveBigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='message',
            name='said_by',
            field=models.CharField(blank=True, db_default='', default='', max_length=20),
        ),
        migrations.AddConstraint(
            model_name='event',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['content', 'execution_attempt_completed', 'execution_cancelled', 'execution_failed', 'execution_finished', 'execution_interrupted', 'execution_resumed', 'execution_started', 'human_request_answered', 'human_request_expired', 'human_request_expiring', 'mission_iteration_completed', 'mission_iteration_started', 'mission_loop_blocked', 'mission_loop_cancelled', 'mission_loop_completed', 'mission_loop_failed', 'mission_loop_limit_reached', 'mission_loop_resumed', 'mission_loop_started', 'mission_loop_waiting', 'mission_signal_received'])), name='agency_event_kind'),
        ),
        migrations.AddField(
            model_name='mission',
            name='agent',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='missions', to='agency.configuredagent'),
        ),
        migrations.AddField(
            model_name='mission',
            name='owner',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='execution',
            name='mission',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='executions', to='agency.mission'),
        ),
        migrations.AddConstraint(
            model_name='execution',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('execution_key__isnull', False), ('mission__isnull', True), models.Q(('execution_key', ''), _negated=True)), models.Q(('execution_key__isnull', True), ('mission__isnull', False)), _connector='OR'), name='agency_execution_has_order'),
        ),
        migrations.AddField(
            model_name='schedule',
            name='mission',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='schedules', to='agency.mission'),
        ),
        migrations.AddField(
            model_name='scheduleslot',
            name='execution',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='schedule_slot', to='agency.execution'),
        ),
        migrations.AddField(
            model_name='scheduleslot',
            name='schedule',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='slots', to='agency.schedule'),
        ),
        migrations.AddField(
            model_name='signal',
            name='execution',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signals', to='agency.execution'),
        ),
        migrations.AddField(
            model_name='signal',
            name='sent_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='mission',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('name', ''), _negated=True), models.Q(('prompt', ''), _negated=True)), name='agency_mission_says_something'),
        ),
        migrations.AddConstraint(
            model_name='mission',
            constraint=models.CheckConstraint(condition=models.Q(('loop_prompt__isnull', True), models.Q(('loop_prompt', ''), _negated=True), _connector='OR'), name='agency_mission_loop_or_null'),
        ),
        migrations.AddConstraint(
            model_name='mission',
            constraint=models.CheckConstraint(condition=models.Q(('max_iterations__gte', 1), ('max_iterations__lte', 100)), name='agency_mission_iterations'),
        ),
        migrations.AddConstraint(
            model_name='mission',
            constraint=models.CheckConstraint(condition=models.Q(('loop_delay_seconds__lte', 86400)), name='agency_mission_delay'),
        ),
        migrations.AddIndex(
            model_name='schedule',
            index=models.Index(condition=models.Q(('next_slot_at__isnull', False)), fields=['next_slot_at'], name='agency_schedule_next'),
        ),
        migrations.AddConstraint(
            model_name='schedule',
            constraint=models.CheckConstraint(condition=models.Q(('overlap__in', ['cancel_previous', 'queue', 'skip'])), name='agency_schedule_overlap'),
        ),
        migrations.AddConstraint(
            model_name='schedule',
            constraint=models.CheckConstraint(condition=models.Q(('catch_up__in', ['run_once', 'skip'])), name='agency_schedule_catch_up'),
        ),
        migrations.AddConstraint(
            model_name='schedule',
            constraint=models.CheckConstraint(condition=models.Q(('is_paused', False), ('next_slot_at__isnull', True), _connector='OR'), name='agency_schedule_paused'),
        ),
        migrations.AddConstraint(
            model_name='scheduleslot',
            constraint=models.UniqueConstraint(fields=('schedule', 'slot_at'), name='agency_schedule_slot_once'),
        ),
        migrations.AddConstraint(
            model_name='scheduleslot',
            constraint=models.CheckConstraint(condition=models.Q(('outcome__in', ['dispatched', 'queued', 'skipped'])), name='agency_schedule_slot_outcome'),
        ),
        migrations.AddIndex(
            model_name='signal',
            index=models.Index(condition=models.Q(('consumed_iteration__isnull', True)), fields=['execution', 'name', 'created_at'], name='agency_signal_waiting'),
        ),
        migrations.AddConstraint(
            model_name='signal',
            constraint=models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='agency_signal_has_name'),
        ),
        migrations.RunPython(call, write_out),
    ]
