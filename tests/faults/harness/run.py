"""One run on one backend: `python -m tests.faults.harness.run HOME SPEC`. Leaves a dump and logs in HOME.

This process submits the orders and lets the nemesis take its turns; it judges nothing.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.harness.backends import Backend, backend
from tests.faults.harness.brokers import Unavailable
from tests.faults.harness.fleet import Fleet
from tests.faults.harness.nemesis import Nemesis, Record, schedule
from tests.faults.harness.outside import Outside
from tests.faults.harness.spec import Spec
from tests.faults.harness.strikes import Strikes

if TYPE_CHECKING:
    from tests.faults.harness.work import Work

STANDSTILL = 90.0
"""Seconds without a committed iteration after which what is left counts as stuck."""
UNAVAILABLE = 3


def main(home: Path, spec: Spec) -> None:
    provider = {"seed": spec.seed, "latency": spec.latency, **spec.provider}
    through_proxy = "cut_commit" in spec.faults
    with (
        backend(spec.backend, home, with_proxy=through_proxy) as made,
        Outside(home, provider) as outside,
    ):
        fleet = Fleet(
            home,
            made.database,
            made.broker_url,
            made.environ | outside.environ | spec.environ,
            spec.threads,
            LLM_CLIENT_FACTORY="tests.faults.harness.app.client.client",
            **spec.agency,
        )
        # This process sees the database itself; only the fleet goes through the proxy.
        os.environ.update(fleet.environ)
        fleet.environ |= made.proxied
        try:
            _run(home, spec, made, fleet)
        finally:
            fleet.stop()


def _run(home: Path, spec: Spec, made: Backend, fleet: Fleet) -> None:
    import django

    django.setup()
    from tests.faults.harness.crowd import Crowd
    from tests.faults.harness.dump import dump
    from tests.faults.harness.work import Work

    work = Crowd(spec, home / "answers.jsonl") if spec.crowd else Work(spec)
    record = Record(home / "nemesis.jsonl")
    lease = spec.agency.get("LEASE_SECONDS", 60.0)
    strikes = Strikes(
        fleet, made, record, work.held, work.wake, seed=spec.seed, lease=lease, spare=spec.spare
    )
    nemesis = Nemesis(strikes, record, schedule(spec.faults, spec.seed), spec.gap)
    fleet.size = {"worker": spec.workers} | ({"dispatcher": 2} if spec.has_broker else {})
    fleet.assemble()
    began = time.monotonic()
    _drive(spec, work, fleet, nemesis, strikes, made)
    for one in fleet.deserters:
        record.note("deserted", pid=one.pid, role=one.role, code=one.process.returncode)
    (home / "dump.json").write_text(json.dumps(dump(time.monotonic() - began)))


def _drive(spec: Spec, work: "Work", fleet: Fleet, nemesis: Nemesis, strikes: Strikes, made: Backend) -> None:
    """Until every order has ended and nothing is left to undo, or nothing moves any more."""
    moved_at, best = time.monotonic(), -1.0
    while not (work.ended() and nemesis.at_rest and not made.queued(fleet.queue)):
        fleet.keep()
        progress = work.progress()
        given = work.feed(nemesis.behind(progress))
        if spec.duplicates:
            strikes.duplicate(given, spec.latest)
        work.cancel_one()
        work.answer()
        nemesis.turn(progress)
        if progress > best or not nemesis.at_rest:
            moved_at, best = time.monotonic(), progress
        if time.monotonic() - moved_at > STANDSTILL:
            return
        time.sleep(0.05)


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        main(Path(sys.argv[1]), Spec(**json.loads(sys.argv[2])))
    except Unavailable as missing:
        print(missing)
        sys.exit(UNAVAILABLE)
