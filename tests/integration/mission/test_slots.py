"""What becomes of slots: each is dispatched once, skipped or queued, and none holds up another schedule's."""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection, connections

from agency.enums import CatchUp, Overlap
from agency.execution import service
from agency.execution.signals import execution_due
from agency.mission import slots
from agency.mission.slots import run_due
from agency.models import ConfiguredAgent, Execution, Mission, Schedule, ScheduleSlot, clock
from agency.models.clock import Now, database_now
from agency.runtime.sweep import Sweeper
from tests.integration.mission.scheduled import due_schedule, executions, make_due, mission_of, outcomes
from tests.integration.rows import execution_row

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(agency_agent: Callable[..., ConfiguredAgent]) -> ConfiguredAgent:
    return agency_agent("clerk")


@pytest.fixture
def mission(agent: ConfiguredAgent) -> Mission:
    return mission_of(agent)


def end(execution: Execution) -> None:
    assert service.request_cancel(execution) == "cancelled"


class TestOnTime:
    def test_a_slot_brings_one_execution_that_says_what_it_is_of(self, mission: Mission) -> None:
        schedule = due_schedule(mission)
        schedule.refresh_from_db()
        assert run_due() == 1
        slot = schedule.slots.get()
        (execution,) = executions(schedule)
        assert (slot.slot_at, slot.outcome, slot.execution) == (
            schedule.next_slot_at,
            "dispatched",
            execution,
        )
        assert execution.metadata["trigger"] == {
            "by": "schedule",
            "schedule": str(schedule.pk),
            "slot": slot.slot_at.isoformat(),
        }
        assert execution.owner == mission.owner

    def test_what_was_dispatched_is_due_at_once(self, mission: Mission) -> None:
        due_schedule(mission)
        told: list[str] = []

        def hear(execution_id: str, **_: Any) -> None:
            told.append(execution_id)

        execution_due.connect(hear)
        try:
            run_due()
        finally:
            execution_due.disconnect(hear)
        assert told == [str(Execution.objects.get().pk)]

    def test_a_slot_is_dealt_with_once_and_the_next_one_is_later(self, mission: Mission) -> None:
        schedule = due_schedule(mission)
        assert [run_due(), run_due()] == [1, 0]
        schedule.refresh_from_db()
        assert schedule.next_slot_at > database_now() + timedelta(days=1)

    def test_before_its_time_nothing_happens(self, mission: Mission) -> None:
        schedule = due_schedule(mission, ago=-2)
        assert run_due() == 0
        assert outcomes(schedule) == []

    def test_a_slot_that_is_on_record_is_not_dispatched_again(self, mission: Mission) -> None:
        """As when the clock of the database was set back."""
        schedule = due_schedule(mission)
        run_due()
        Schedule.objects.update(next_slot_at=schedule.slots.get().slot_at)
        end(executions(schedule)[0])
        assert run_due() == 1
        assert outcomes(schedule) == ["dispatched"]
        assert len(executions(schedule)) == 1

    def test_no_more_than_the_limit_are_dealt_with_at_once_the_oldest_first(self, agent: Any) -> None:
        made = [due_schedule(mission_of(agent), ago=n) for n in (1, 3, 2)]
        assert run_due(limit=2) == 2
        assert [outcomes(schedule) for schedule in made] == [[], ["dispatched"], ["dispatched"]]
        assert run_due(limit=2) == 1


class TestCatchUp:
    def test_all_that_was_missed_is_one_dispatch(self, mission: Mission) -> None:
        schedule = due_schedule(mission, cron="* * * * *")
        planned = make_due(schedule, 600)
        assert run_due() == 1
        became = outcomes(schedule)
        assert len(became) in (10, 11)
        assert became == ["skipped"] * (len(became) - 1) + ["dispatched"]
        first, *times = schedule.slots.order_by("slot_at").values_list("slot_at", flat=True)
        assert first == planned
        assert {later - one for one, later in pairwise(times)} == {timedelta(minutes=1)}
        schedule.refresh_from_db()
        assert schedule.next_slot_at - times[-1] == timedelta(minutes=1)

    def test_where_missed_slots_are_skipped_none_is_dispatched_late(self, mission: Mission) -> None:
        schedule = due_schedule(mission, ago=61, catch_up=CatchUp.SKIP)
        run_due()
        assert outcomes(schedule) == ["skipped"]
        assert executions(schedule) == []

    def test_a_slot_within_the_grace_is_on_time(self, mission: Mission) -> None:
        schedule = due_schedule(mission, ago=50, catch_up=CatchUp.SKIP)
        run_due()
        assert outcomes(schedule) == ["dispatched"]

    def test_of_a_year_of_missed_minutes_a_hundred_are_remembered(self, mission: Mission) -> None:
        schedule = due_schedule(mission, ago=365 * 86_400, cron="* * * * *")
        run_due()
        became = outcomes(schedule)
        assert became == ["skipped"] * slots.REMEMBERED + ["dispatched"]
        assert schedule.slots.latest("slot_at").outcome == "dispatched"

    def test_the_clock_of_the_database_counts(
        self, mission: Mission, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        schedule = due_schedule(mission, ago=-3600)
        monkeypatch.setattr(clock, "offset_seconds", 3601.0)
        run_due()
        assert outcomes(schedule) == ["dispatched"]


class TestOverlap:
    def twice(self, mission: Mission, overlap: Overlap) -> Schedule:
        """A schedule whose first execution still runs when its second slot comes."""
        schedule = due_schedule(mission, ago=2, overlap=overlap)
        run_due()
        make_due(schedule)
        assert run_due() == 1
        return schedule

    def test_skip_leaves_the_slot_out_while_one_runs(self, mission: Mission) -> None:
        schedule = self.twice(mission, Overlap.SKIP)
        assert outcomes(schedule) == ["dispatched", "skipped"]
        end(executions(schedule)[0])
        make_due(schedule, 0)
        run_due()
        assert outcomes(schedule) == ["dispatched", "skipped", "dispatched"]

    def test_queue_dispatches_the_slot_as_soon_as_the_one_before_has_ended(self, mission: Mission) -> None:
        schedule = self.twice(mission, Overlap.QUEUE)
        assert outcomes(schedule) == ["dispatched", "queued"]
        assert run_due() == 0
        end(executions(schedule)[0])
        assert [run_due(), run_due()] == [1, 0]
        assert outcomes(schedule) == ["dispatched", "dispatched"]
        second = executions(schedule)[1]
        assert second.status == "pending"
        assert second.metadata["trigger"]["slot"] == second.schedule_slot.slot_at.isoformat()

    def test_no_more_than_one_is_queued(self, mission: Mission) -> None:
        schedule = self.twice(mission, Overlap.QUEUE)
        make_due(schedule, 0)
        run_due()
        assert outcomes(schedule) == ["dispatched", "queued", "skipped"]

    def test_a_slot_that_comes_when_the_queue_is_free_is_queued_behind_it(self, mission: Mission) -> None:
        schedule = self.twice(mission, Overlap.QUEUE)
        end(executions(schedule)[0])
        make_due(schedule, 0)
        assert run_due() == 2
        assert outcomes(schedule) == ["dispatched", "dispatched", "queued"]

    def test_cancel_previous_cancels_the_one_that_runs_and_dispatches(self, mission: Mission) -> None:
        schedule = self.twice(mission, Overlap.CANCEL_PREVIOUS)
        assert outcomes(schedule) == ["dispatched", "dispatched"]
        assert [one.status for one in executions(schedule)] == ["cancelled", "pending"]

    def test_a_mission_that_cannot_run_now_cancels_nothing(self, mission: Mission) -> None:
        schedule = due_schedule(mission, ago=2, overlap=Overlap.CANCEL_PREVIOUS)
        run_due()
        ConfiguredAgent.objects.update(agent_key="gone")
        make_due(schedule)
        run_due()
        assert outcomes(schedule) == ["dispatched", "skipped"]
        assert [one.cancel_requested_at for one in executions(schedule)] == [None]

    def test_what_others_dispatch_of_the_mission_is_no_overlap(self, mission: Mission, agent: Any) -> None:
        execution_row(agent, execution_key=None, mission=mission)
        due_schedule(mission, ago=2)
        run_due()
        schedule = due_schedule(mission, ago=1)
        run_due()
        assert outcomes(schedule) == ["dispatched"]

    def test_an_earlier_execution_that_goes_on_again_counts(self, mission: Mission) -> None:
        schedule = due_schedule(mission, ago=3)
        run_due()
        first = executions(schedule)[0]
        end(first)
        make_due(schedule, 2)
        run_due()
        end(executions(schedule)[1])
        Execution.objects.filter(pk=first.pk).update(
            status="in_progress", next_run_at=Now(), finished_at=None, cancel_requested_at=None
        )
        make_due(schedule, 1)
        run_due()
        assert outcomes(schedule) == ["dispatched", "dispatched", "skipped"]


def no_agent_class(mission: Mission) -> None:
    ConfiguredAgent.objects.filter(pk=mission.agent_id).update(agent_key="not-deployed")


def no_owner(mission: Mission) -> None:
    type(mission.owner).objects.filter(pk=mission.owner_id).update(is_active=False)


def removed(mission: Mission) -> None:
    Mission.objects.filter(pk=mission.pk).update(archived_at=Now())


def nonsense(mission: Mission) -> None:
    Mission.objects.filter(pk=mission.pk).update(limits=7)


class TestFaultyMissions:
    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (no_agent_class, "not-deployed"),
            (no_owner, "owner is closed"),
            (removed, "was removed"),
            (nonsense, "skipped"),
        ],
    )
    def test_one_that_cannot_run_has_its_slot_skipped_with_the_reason_and_stops_no_other(
        self,
        spoil: Callable[[Mission], None],
        says: str,
        agency_agent: Callable[..., ConfiguredAgent],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.INFO)
        faulty = due_schedule(mission_of(agency_agent("clerk")), ago=2)
        sound = due_schedule(mission_of(agency_agent("clerk")), ago=1)
        spoil(faulty.mission)
        assert run_due() == 2
        assert (outcomes(faulty), outcomes(sound)) == (["skipped"], ["dispatched"])
        assert any(str(faulty.pk) in line and says in line for line in caplog.messages)
        assert run_due() == 0

    def test_a_queued_slot_of_one_that_cannot_run_any_more_is_skipped(self, mission: Mission) -> None:
        schedule = TestOverlap().twice(mission, Overlap.QUEUE)
        removed(mission)
        end(executions(schedule)[0])
        assert [run_due(), run_due()] == [1, 0]
        assert outcomes(schedule) == ["dispatched", "skipped"]

    def test_a_schedule_that_this_machine_cannot_read_is_paused_and_stops_no_other(
        self, agent: ConfiguredAgent, caplog: pytest.LogCaptureFixture
    ) -> None:
        unread = due_schedule(mission_of(agent), ago=2)
        other = due_schedule(mission_of(agent), ago=1)
        Schedule.objects.filter(pk=unread.pk).update(time_zone="Europe/Atlantis")
        assert run_due() == 2
        unread.refresh_from_db()
        assert (unread.is_paused, unread.next_slot_at) == (True, None)
        assert outcomes(other) == ["dispatched"]
        assert "Europe/Atlantis" in caplog.text


@pytest.mark.django_db(transaction=True)
class TestManyAtOnce:
    def test_a_schedule_that_the_database_refuses_stays_due_and_stops_no_other(
        self, agent: ConfiguredAgent, caplog: pytest.LogCaptureFixture
    ) -> None:
        refused = due_schedule(mission_of(agent), ago=2)
        other = due_schedule(mission_of(agent), ago=1)
        with _refusing(refused):
            assert run_due() == 2
            assert (outcomes(refused), outcomes(other)) == ([], ["dispatched"])
        assert executions(refused) == []
        assert run_due() == 1
        assert outcomes(refused) == ["dispatched"]
        assert "stays due" in caplog.text

    @pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.CANCEL_PREVIOUS])
    def test_any_number_of_dispatchers_dispatch_each_slot_once(
        self, agent: ConfiguredAgent, overlap: Overlap
    ) -> None:
        made = [due_schedule(mission_of(agent), ago=10, overlap=overlap) for _ in range(8)]
        for ago in (9, 8, 7):
            _at_once(run_due, 6)
            for schedule in made:
                for execution in executions(schedule):
                    service.request_cancel(execution)
                make_due(schedule, ago)
        _at_once(run_due, 6)
        for schedule in made:
            assert outcomes(schedule) == ["dispatched"] * 4
            kept = executions(schedule)
            assert len(kept) == 4
            assert [one.schedule_slot.schedule_id for one in kept] == [schedule.pk] * 4
        assert ScheduleSlot.objects.count() == Execution.objects.count() == 32

    def test_a_queue_that_gets_free_is_dispatched_once(self, agent: ConfiguredAgent) -> None:
        made = [due_schedule(mission_of(agent), ago=3, overlap=Overlap.QUEUE) for _ in range(6)]
        run_due()
        for schedule in made:
            make_due(schedule)
        run_due()
        for schedule in made:
            end(executions(schedule)[0])
        _at_once(run_due, 6)
        assert [outcomes(schedule) for schedule in made] == [["dispatched"] * 2] * 6
        assert Execution.objects.count() == 12


def _at_once(work: Callable[[], Any], threads: int) -> None:
    barrier = threading.Barrier(threads)
    failures: list[BaseException] = []

    def run() -> None:
        barrier.wait(60)
        try:
            work()
        except BaseException as exc:
            failures.append(exc)
        finally:
            connections.close_all()

    started = [threading.Thread(target=run) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
    assert failures == []


class _refusing:
    """A trigger by which the database takes no slot of this schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.table = ScheduleSlot._meta.db_table
        self.value = str(schedule.pk) if connection.vendor == "postgresql" else schedule.pk.hex

    def __enter__(self) -> None:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(
                    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                    "$$ BEGIN RAISE EXCEPTION 'refused'; END $$"
                )
                cursor.execute(
                    f"CREATE TRIGGER refusing BEFORE INSERT ON {self.table} FOR EACH ROW "
                    f"WHEN (NEW.schedule_id = '{self.value}') EXECUTE FUNCTION refuse()"
                )
            else:
                cursor.execute(
                    f"CREATE TRIGGER refusing BEFORE INSERT ON {self.table} "
                    f"WHEN NEW.schedule_id = '{self.value}' BEGIN SELECT RAISE(ABORT, 'refused'); END"
                )

    def __exit__(self, *_: object) -> None:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(f"DROP TRIGGER refusing ON {self.table}; DROP FUNCTION refuse()")
            else:
                cursor.execute("DROP TRIGGER refusing")


class TestOldSlots:
    """What became of slots is kept for some time, and the last hundred for ever."""

    @pytest.fixture
    def schedule(self, mission: Mission) -> Schedule:
        """Due, with 103 slots of last year behind it and one of last week."""
        schedule = due_schedule(mission)
        passed = [database_now() - timedelta(days=400, minutes=n) for n in range(103)]
        ScheduleSlot.objects.bulk_create(
            ScheduleSlot(schedule=schedule, slot_at=slot, outcome="skipped")
            for slot in [*passed, database_now() - timedelta(days=7)]
        )
        return schedule

    def oldest(self, schedule: Schedule) -> ScheduleSlot:
        return schedule.slots.order_by("slot_at")[0]

    def test_the_sweep_forgets_those_that_are_older_than_the_setting_says(
        self, schedule: Schedule, settings: Any
    ) -> None:
        before = list(schedule.slots.order_by("slot_at").values_list("pk", flat=True))
        Sweeper().turn()
        after = list(schedule.slots.order_by("slot_at").values_list("pk", flat=True))
        assert after[:-1] == before[3:]
        assert outcomes(schedule)[-1] == "dispatched"
        settings.AGENCY = {"SLOT_RETENTION_SECONDS": 86_400.0}
        make_due(schedule)
        Sweeper().turn()
        assert schedule.slots.count() == 100 + 2

    def test_without_a_limit_all_are_kept(self, schedule: Schedule, settings: Any) -> None:
        settings.AGENCY = {"SLOT_RETENTION_SECONDS": None}
        Sweeper().turn()
        assert schedule.slots.count() == 103 + 1 + 1

    def test_one_whose_execution_still_runs_or_that_is_queued_stays(
        self, schedule: Schedule, mission: Mission
    ) -> None:
        running, ended = mission.dispatch(), mission.dispatch()
        end(ended)
        by_age = list(schedule.slots.order_by("slot_at")[:2])
        for slot, execution in zip(by_age, (running, ended), strict=True):
            slot.outcome, slot.execution = "dispatched", execution
            slot.save()
        run_due(keep_seconds=86_400.0)
        left = set(schedule.slots.values_list("pk", flat=True))
        assert by_age[0].pk in left and by_age[1].pk not in left
        assert Execution.objects.filter(pk=ended.pk).exists()
        assert outcomes(schedule)[-1] == "skipped"
