"""One run on one backend: `python -m tests.faults.harness.run HOME SPEC`. Leaves a dump and logs in HOME.

This process submits the orders and lets the nemesis take its turns; it judges nothing.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.faults.harness.backends import Unavailable, backend
from tests.faults.harness.fleet import Fleet
from tests.faults.harness.nemesis import Nemesis
from tests.faults.harness.outside import Outside
from tests.faults.harness.spec import Spec

STANDSTILL = 90.0
"""Seconds without a committed iteration after which what is left counts as stuck."""
UNAVAILABLE = 3


def main(home: Path, spec: Spec) -> None:
    provider = {"seed": spec.seed, "latency": spec.latency, **spec.provider}
    with backend(spec.backend, home) as made, Outside(home, provider) as outside:
        settings = {"LLM_CLIENT_FACTORY": "tests.faults.harness.app.client.client", **spec.agency}
        fleet = Fleet(
            home, made.database, made.broker_url, made.environ | outside.environ, spec.threads, **settings
        )
        fleet.adopt()
        try:
            _run(home, spec, made, fleet)
        finally:
            fleet.stop()


def _run(home: Path, spec: Spec, made: Any, fleet: Fleet) -> None:
    import django

    django.setup()
    from tests.faults.harness.dump import dump
    from tests.faults.harness.work import Work

    work = Work(spec)
    fleet.size = {"worker": spec.workers} | ({"dispatcher": 2} if spec.has_broker else {})
    lease = spec.agency.get("LEASE_SECONDS", 60.0)
    nemesis = Nemesis(
        fleet,
        made,
        work.held,
        home / "nemesis.jsonl",
        faults=spec.faults,
        seed=spec.seed,
        gap=spec.gap,
        lease=lease,
        spare=spec.spare,
    )
    began = time.monotonic()
    _drive(work, fleet, nemesis)
    (home / "dump.json").write_text(json.dumps(dump(time.monotonic() - began)))


def _drive(work: Any, fleet: Fleet, nemesis: Nemesis) -> None:
    """Until every order has ended and nothing is left to undo, or nothing moves any more."""
    moved_at, best = time.monotonic(), -1.0
    while not (work.ended() and nemesis.at_rest):
        fleet.keep()
        progress = work.progress()
        work.feed(nemesis.behind(progress))
        nemesis.turn(progress)
        if progress > best:
            moved_at, best = time.monotonic(), progress
        if time.monotonic() - moved_at > STANDSTILL and nemesis.at_rest:
            return
        time.sleep(0.05)


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        main(Path(sys.argv[1]), Spec(**json.loads(sys.argv[2])))
    except Unavailable as missing:
        print(missing)
        sys.exit(UNAVAILABLE)
