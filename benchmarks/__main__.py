"""`make bench`: measures, prints the table and writes `bench.json` into the state directory.

`make bench BENCH="--rounds 3 --only agno"` measures less; `--only none` leaves out every peer.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.durable.journal import PEERS as DURABLE_PEERS
from benchmarks.durable.journal import journal_rows
from benchmarks.environments import PEERS, python_of
from benchmarks.report import Row, show, write
from benchmarks.rounds import AtLeast, Case, Figures, Worker, measure

LENGTHS = (10, 100, 300, 1000)
JOURNAL_ROUNDS = 5
OURS, LOOP, ADAPTER, FLOOR = "agency-sync", "agency-loop", "agency-async", "bare"
TITLES = {
    "agno": "agno",
    "langgraph": "LangGraph",
    "pydantic-ai": "pydantic-ai",
    "openai-agents": "OpenAI Agents",
    "strands": "Strands",
}
LONGEST = 20.0
"""Seconds after which a run is cut off, and its figure is shown as "more than": some peers need minutes."""
CROWD = Case(
    "200 runs x 10 steps at once",
    {"case": "crowd", "runs": 200, "count": 10, "delay": 0.05, "seconds": LONGEST},
)


def main(argv: Sequence[str] | None = None) -> None:
    arguments = _arguments(argv)
    home = Path(os.environ.get("AGENCY_HOME") or ".agency")
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.7 * cores:
        print(f"This machine is busy (load {load:.1f} on {cores} cores): times will be longer than they are.")
    cases = [
        Case(f"{count} steps", {"case": "steps", "count": count, "seconds": LONGEST})
        for count in arguments.lengths
    ]
    with ExitStack() as stack:
        workers = _workers(stack, arguments.only, home)
        figures = measure(workers, [*cases, CROWD], arguments.rounds)
    rows = [*_rows(figures, arguments.lengths), *_core_rows(), *_queue_rows()]
    rows += journal_rows(home, min(arguments.rounds, JOURNAL_ROUNDS), arguments.lengths, arguments.only)
    columns = [
        *((f"{count} steps", "step", f"{count:,} steps, µs a step") for count in arguments.lengths),
        (CROWD.name, "wall", "200 runs at once, s"),
        (CROWD.name, "cpu", "ms CPU a run"),
    ]
    names = {OURS: "agency", LOOP: "agency, loop", ADAPTER: "agency, adapter", FLOOR: "by hand", **TITLES}
    compared = {
        names[worker.name]: [figures.of(worker.name, case, what) for case, what, _ in columns]
        for worker in sorted(workers, key=lambda worker: list(names).index(worker.name))
    }
    show(compared, [title for *_, title in columns], rows)
    write(rows, home / "bench.json")
    print(f"Written to {home / 'bench.json'}")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="how often each case is measured (7)")
    peers = (*PEERS, *DURABLE_PEERS)
    parser.add_argument("--only", nargs="+", default=peers, metavar="PEER", help=", ".join(peers))
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="steps of a run")
    return parser.parse_args(argv)


def _workers(stack: ExitStack, wanted: Sequence[str], home: Path) -> list[Worker]:
    """A ready worker for each subject; a peer that cannot be had is left out, and named."""
    workers = [
        stack.enter_context(Worker(name, Path(sys.executable))) for name in (FLOOR, OURS, LOOP, ADAPTER)
    ]
    for peer in (peer for peer in PEERS if peer in wanted):
        python = python_of(peer, home)
        if isinstance(python, str):
            print(f"{peer} is left out: {python}")
        else:
            workers.append(stack.enter_context(Worker(peer, python.absolute())))
    ready: list[Worker] = []
    for worker in workers:
        version = worker.hello()
        if version is None:
            print(f"{worker.name} is left out: {worker.fault()}")
        else:
            print(f"{worker.name} {version}".strip())
            ready.append(worker)
    return ready


def _rows(figures: Figures, lengths: Sequence[int]) -> list[Row]:
    rows = [
        _row(figures, f"{count} steps", "step", f"a step of {count}", "µs CPU", target=100)
        for count in lengths
    ]
    longest = f"{max(lengths)} steps"
    rows += _flatness(figures, longest, OURS, f"last ten of {longest} to the first", target=1.3)
    # No target: the library behind the adapter reads the whole history for each request.
    rows += _flatness(figures, longest, ADAPTER, "the same through the adapter for hosted models")
    for peer, least in (("agno", 3.0), ("langgraph", 20.0), ("pydantic-ai", 50.0)):
        rows += _ratio(figures, peer, least, [count for count in lengths if count <= 300])
    rows.append(_row(figures, CROWD.name, "wall", CROWD.name, "s wall", target=0.75))
    rows.append(_row(figures, CROWD.name, "cpu", "a run of those", "ms CPU", target=1.5))
    ways = {LOOP: "with a client on the background loop", ADAPTER: "through the adapter for hosted models"}
    for subject, way in ways.items():
        spent = figures.of(subject, CROWD.name, "cpu")
        if spent is not None:
            rows.append(Row(f"a run of those {way}", spent, "ms CPU", target=3.5))
    return rows


def _row(figures: Figures, case: str, what: str, name: str, unit: str, target: float) -> Row:
    measured = {peer: figures.of(peer, case, what) for peer in PEERS}
    return Row(
        name,
        _of_ours(figures, case, what),
        unit,
        target,
        figures.of(FLOOR, case, what),
        {peer: value for peer, value in measured.items() if value is not None},
    )


def _flatness(figures: Figures, case: str, ours: str, name: str, target: float | None = None) -> list[Row]:
    def flat(subject: str) -> float | None:
        first, last = (figures.of(subject, case, what) for what in ("first", "last"))
        return None if first is None or last is None else AtLeast.like(last / first, last)

    peers = {peer: value for peer in PEERS if (value := flat(peer)) is not None}
    value = flat(ours)
    return [] if value is None else [Row(name, value, "times", target, flat(FLOOR), peers)]


def _ratio(figures: Figures, peer: str, least: float, lengths: Sequence[int]) -> list[Row]:
    """How many times our step a peer's costs, at the length at which that is least."""
    ratios = [
        AtLeast.like(theirs / _of_ours(figures, f"{count} steps", "step"), theirs)
        for count in lengths
        if (theirs := figures.of(peer, f"{count} steps", "step")) is not None
    ]
    if not ratios:
        return []
    return [Row(f"a step of {peer}'s to ours", min(ratios), "times", least, more_is_better=True)]


def _of_ours(figures: Figures, case: str, what: str) -> float:
    value = figures.of(OURS, case, what)
    assert value is not None
    return value


def _core_rows() -> list[Row]:
    said = subprocess.check_output([sys.executable, "-m", "benchmarks.core"], text=True)
    core: dict[str, float] = json.loads(said)
    return [
        Row("memory of 1,000 steps beyond their content", core["memory"], "MB", 5),
        Row("building request 1,000 to request 10", core["request"], "times", 1.5),
        Row(
            "requests that only add to the last, with trimming", core["prefix"], "%", 90, more_is_better=True
        ),
        Row("display_trace of 1,000 events", core["trace"], "s CPU", 1),
        Row("import agency.agent", core["import"] * 1e3, "ms CPU", 150, floor=core["import pydantic"] * 1e3),
        Row("import agency.agent and its first run", core["first run"] * 1e3, "ms CPU"),
    ]


def _queue_rows() -> list[Row]:
    done = subprocess.run([sys.executable, "-m", "benchmarks.queue"], stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout) if done.returncode == 0 else {}
    if not found:
        print("The queue is left out: its servers or processes did not run on this machine")
        return []
    return [
        Row("a bare hop, half of them", found["hop p50"], "ms", 10, floor=found["noop p50"]),
        Row("a bare hop, 95 in 100", found["hop p95"], "ms", 30, floor=found["noop p95"]),
        Row("a mission's hop, half of them", found["mission p50"], "ms", 10, floor=found["noop p50"]),
        Row("a mission's hop, 95 in 100", found["mission p95"], "ms", 30, floor=found["noop p95"]),
        Row(
            "20 missions x 25 hops to as many no-op tasks", found["ratio"], "times", 0.5, more_is_better=True
        ),
        Row(
            "20 missions x 25 whole iterations to as many no-op tasks",
            found["mission ratio"],
            "times",
            0.5,
            more_is_better=True,
        ),
        Row("an answer to the start of what it lets go on, half of them", found["answer p50"], "s"),
        Row("an answer to the start of what it lets go on, 95 in 100", found["answer p95"], "s", 1),
        Row("a claim beside 100,000 waiting rows, 95 in 100", found["idle claim p95"], "ms", 10),
        Row("a claim from 5,000 due ones, 95 in 100", found["batch claim p95"], "ms", 10),
        Row("the dispatcher beside 100,000 waiting rows", found["dispatcher"], "% CPU", 5),
        Row("lateness beside 100,000 waiting rows, 95 in 100", found["late p95"], "s", 2),
        Row("what the worker grows by meanwhile", found["memory"], "MB", 5),
    ]


if __name__ == "__main__":
    main()
