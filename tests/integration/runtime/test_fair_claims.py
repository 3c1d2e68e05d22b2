"""Claims are fair to owners and agents, and keep the limits on how many run at once."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agency.execution import store
from agency.execution.claims import Claim
from agency.models import ConfiguredAgent, Execution, ProviderGate, Thread
from agency.models.clock import Now
from agency.runtime import fairness, lanes
from agency.runtime.claim import claim
from tests.integration.runtime.test_claim import in_threads

MakeAgent = Callable[..., ConfiguredAgent]


@pytest.fixture(autouse=True)
def fresh_memory() -> Iterator[None]:
    fairness._served.clear()
    lanes._resume_after.clear()
    yield
    fairness._served.clear()


@pytest.fixture
def agent_of(django_user_model: Any) -> Callable[..., ConfiguredAgent]:
    """`agent_of("ada")`: a new agent of that owner."""

    def make(owner: str, **fields: Any) -> ConfiguredAgent:
        user, _ = django_user_model.objects.get_or_create(username=owner)
        name = uuid.uuid4().hex
        return ConfiguredAgent.objects.create(owner=user, name=name, agent_key="fault-clerk", **fields)

    return make


def due(
    agent: ConfiguredAgent, count: int = 1, provider: str = "openai", ago: float = 0.0
) -> list[Execution]:
    threads = [Thread(owner=agent.owner, agent=agent) for _ in range(count)]
    rows = [
        Execution(
            owner=agent.owner,
            agent=agent,
            thread=thread,
            provider=provider,
            execution_key="fault-errand",
            next_run_at=Now(-ago),
        )
        for thread in threads
    ]
    Thread.objects.bulk_create(threads)
    return Execution.objects.bulk_create(rows)


def owner_of(claimed: Claim | None) -> str:
    assert claimed is not None
    return Execution.objects.select_related("owner").get(pk=claimed.execution_id).owner.username


@pytest.mark.django_db
class TestFairness:
    def test_a_batch_of_thousands_delays_another_owners_run_by_no_claim(self, agent_of: MakeAgent) -> None:
        batch = due(agent_of("ada"), 5000, ago=60)
        assert owner_of(claim()) == "ada"
        (polled,) = due(agent_of("bob"))
        second = claim()
        assert second is not None and second.execution_id == str(polled.pk)
        (woken,) = due(agent_of("eve"))
        third = claim(batch[10].pk, 1, in_turn_only=True)
        assert third is not None and third.execution_id == str(woken.pk)

    def test_a_single_worker_with_one_place_serves_owners_in_turn(self, agent_of: MakeAgent) -> None:
        due(agent_of("ada"), 30, ago=60)
        due(agent_of("bob"), 3)
        served = []
        for _ in range(8):
            claimed = claim()
            served.append(owner_of(claimed))
            assert claimed is not None
            Execution.objects.filter(pk=claimed.execution_id).delete()
        assert served[:6] in (["ada", "bob"] * 3, ["bob", "ada"] * 3)
        assert served[6:] == ["ada", "ada"]

    def test_an_agent_of_the_same_owner_gets_its_turn_beside_a_batch(self, agent_of: MakeAgent) -> None:
        batch_agent, other = agent_of("ada"), agent_of("ada")
        due(batch_agent, 300, ago=60)
        (single,) = due(other)
        taken = [claim(), claim()]
        assert str(single.pk) in {one.execution_id for one in taken if one}

    def test_more_lanes_than_a_look_takes_in_all_get_their_turn(
        self, agent_of: MakeAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        due(agent_of("first"), lanes.WINDOW + 5, ago=60)
        agents = [agent_of(f"owner-{n}") for n in range(lanes.WINDOW + 20)]
        expected = {str(due(agent)[0].pk) for agent in agents}
        taken: set[str] = set()
        for _ in range(len(agents) + 40):
            if (claimed := claim()) is not None:
                taken.add(claimed.execution_id)
        assert expected <= taken

    def test_rows_that_wait_for_later_have_no_lane(self, agent_of: MakeAgent) -> None:
        due(agent_of("ada"), 3, ago=-60)
        due(agent_of("bob"), lanes.WINDOW + 1)
        assert {one.lane.owner for one in lanes.look().waiting} == {
            Execution.objects.filter(next_run_at__lte=Now()).first().owner_id
        }


@pytest.mark.django_db
class TestLimits:
    def test_an_owners_limit_holds_for_polls_and_wake_ups_and_leaves_others_alone(
        self, agent_of: MakeAgent, settings: Any
    ) -> None:
        settings.AGENCY = {"CONCURRENCY_PER_OWNER": 2}
        adas = due(agent_of("ada"), 2) + due(agent_of("ada"), 2)
        due(agent_of("bob"))
        owners = Counter(owner_of(one) for one in (claim(), claim(), claim()))
        assert owners == {"ada": 2, "bob": 1}
        assert claim() is None
        rest = Execution.objects.filter(pk__in=[one.pk for one in adas], claim_id=None)
        assert claim(rest.first().pk, 1) is None
        assert claim(rest.first().pk, 1, in_turn_only=True) is None

    def test_a_place_that_gets_free_is_given_to_the_next(self, agent_of: MakeAgent, settings: Any) -> None:
        settings.AGENCY = {"CONCURRENCY_PER_OWNER": 1}
        due(agent_of("ada"), 2)
        first = claim()
        assert first is not None and claim() is None
        store.release(first, delay=30)
        second = claim()
        assert second is not None
        assert second.execution_id != first.execution_id

    def test_a_lost_claim_can_be_claimed_anew_by_id_at_the_limit(
        self, agent_of: MakeAgent, settings: Any
    ) -> None:
        settings.AGENCY = {"CONCURRENCY_PER_OWNER": 1}
        (one,) = due(agent_of("ada"))
        assert claim(one.pk) is not None
        Execution.objects.filter(pk=one.pk).update(lease_until=Now(-1))
        again = claim(one.pk)
        assert again is not None and again.fence == 2

    def test_a_providers_limit_counts_all_who_use_it(self, agent_of: MakeAgent, settings: Any) -> None:
        settings.AGENCY = {"CONCURRENCY_PER_PROVIDER": {"openai": 2}}
        for owner in ("ada", "bob", "eve"):
            due(agent_of(owner))
        due(agent_of("ada"), provider="local")
        taken = [one for one in (claim(), claim(), claim(), claim()) if one]
        providers = Execution.objects.filter(pk__in=[one.execution_id for one in taken])
        assert Counter(providers.values_list("provider", flat=True)) == {"openai": 2, "local": 1}

    def test_an_agent_may_have_a_limit_of_its_own(self, agent_of: MakeAgent, settings: Any) -> None:
        settings.AGENCY = {"CONCURRENCY_PER_AGENT": 5}
        due(agent_of("ada", limits={"concurrency": 1}), 3)
        assert [claim() is not None for _ in range(3)] == [True, False, False]

    def test_a_limit_that_was_lowered_waits_until_enough_have_ended(
        self, agent_of: MakeAgent, settings: Any
    ) -> None:
        due(agent_of("ada"), 5)
        taken = [claim() for _ in range(3)]
        settings.AGENCY = {"CONCURRENCY_PER_OWNER": 2}
        for one in taken[:2]:
            assert claim() is None
            assert one is not None
            store.release(one, delay=30)
        assert claim() is not None

    def test_a_batch_at_its_limit_does_not_hide_others(self, agent_of: MakeAgent, settings: Any) -> None:
        settings.AGENCY = {"CONCURRENCY_PER_OWNER": 1}
        due(agent_of("ada"), lanes.WINDOW + 50, ago=60)
        assert owner_of(claim()) == "ada"
        due(agent_of("bob"))
        assert owner_of(claim()) == "bob"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("whose", ["OWNER", "AGENT", "PROVIDER"])
def test_claimers_at_once_never_go_beyond_a_limit_and_reach_it(
    agent_of: MakeAgent, settings: Any, whose: str
) -> None:
    settings.AGENCY = {f"CONCURRENCY_PER_{whose}": 3}
    rows = due(agent_of("ada"), 40)
    ready = threading.Barrier(8)
    peaks: list[int] = []

    def race() -> None:
        ready.wait()
        for n in range(10):
            one = claim() if n % 2 else claim(rows[n].pk, 1)
            peaks.append(Execution.objects.filter(claim_id__isnull=False).count())
            if one is not None:
                store.release(one)

    in_threads(8, race)
    assert max(peaks) <= 3
    taken = [one for one in (claim() for _ in range(5)) if one]
    assert len(taken) == 3


@pytest.mark.django_db
class TestClosedGate:
    def test_nothing_of_its_provider_is_claimed_until_it_opens(self, agent_of: MakeAgent) -> None:
        (shut,), (open_,) = due(agent_of("ada"), ago=60), due(agent_of("ada"), provider="local")
        gate = ProviderGate.objects.create(provider="openai", not_before=Now(30))
        taken = claim()
        assert taken is not None and taken.execution_id == str(open_.pk)
        assert claim() is None
        assert claim(shut.pk, 1) is None
        assert claim(shut.pk, 1, in_turn_only=True) is None
        ProviderGate.objects.filter(pk=gate.pk).update(not_before=Now(-1))
        assert claim() is not None
