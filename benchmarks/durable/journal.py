"""The journal's cost a step, on PostgreSQL and SQLite, with floor, peers, flatness and storage."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from benchmarks.environments import python_of
from benchmarks.report import Row
from benchmarks.rounds import Case, Figures, Worker, measure
from tests import servers

PEERS = ("dbos", "langgraph-postgres")
SUBJECTS = ("bare", "agency", "agency-idempotent")
TARGETS = {"PostgreSQL": 0.8, "SQLite": 0.5}
LONGEST_OF_PEERS = 300
FLAT = 1.3
TIMES_LESS_STORED = 100


def journal_rows(home: Path, rounds: int, lengths: Sequence[int], wanted: Sequence[str]) -> list[Row]:
    """Measure, print who is left out, and give the rows for the report."""
    rows: list[Row] = []
    for database in TARGETS:
        with ExitStack() as stack:
            workers = [*_workers(stack, database, wanted, home)]
            figures = _measured(workers, rounds, lengths)
            rows += _rows(database, figures, lengths)
    return rows


def _measured(workers: list[Worker], rounds: int, lengths: Sequence[int]) -> Figures:
    """A peer that stores the whole history at every step is spared the longest runs."""
    figures = Figures()
    for count in sorted(lengths):
        case = Case(f"{count} steps", {"count": count})
        fit = [worker for worker in workers if worker.name not in PEERS or count <= LONGEST_OF_PEERS]
        figures.samples.update(measure(fit, [case], rounds).samples)
        workers = [one for one in workers if one not in fit or figures.of(one.name, case.name, "step")]
    return figures


def _workers(stack: ExitStack, database: str, wanted: Sequence[str], home: Path) -> Iterator[Worker]:
    """A ready worker for each subject, each with a database of its own on one server."""
    server = stack.enter_context(servers.postgres(durable=True)) if database == "PostgreSQL" else None
    pythons: dict[str, Path | str] = dict.fromkeys(SUBJECTS, Path(sys.executable))
    if server is not None:
        pythons |= {peer: python_of(peer, home) for peer in PEERS if peer in wanted}
    for name, python in pythons.items():
        if isinstance(python, str):
            print(f"{name} is left out: {python}")
            continue
        url = stack.enter_context(_database(server))
        module = "benchmarks.durable.worker"
        worker = stack.enter_context(Worker(name, python.absolute(), module, url))
        version = worker.hello()
        if version is None:
            print(f"{name} is left out: {worker.fault()}")
        else:
            print(f"{name} {version} on {database}".replace("  ", " "))
            yield worker


@contextmanager
def _database(server: str | None) -> Iterator[str]:
    """The URL of an empty database: on the server, or a file."""
    if server is None:
        with servers.directory("agency-bench-") as home:
            yield f"sqlite:///{home}/database.sqlite3"
        return
    with servers.database_on(server) as url:
        parts = urlsplit(url)
        # Not every driver takes a socket's directory as the host part.
        host = unquote(parts.netloc.rpartition("@")[2])
        yield f"postgresql://{parts.username}@{parts.path}?host={host}"


def _rows(database: str, figures: Figures, lengths: Sequence[int]) -> list[Row]:
    rows = [_step(database, figures, count) for count in lengths]
    longest = max(lengths)
    case = f"{longest} steps"
    announced = figures.of("agency-idempotent", case, "step")
    if announced is not None:
        name = f"a journaled step of {longest} on {database} whose call is announced: three commits"
        rows.append(Row(name, announced, "ms", None, figures.of("bare", case, "step")))
    rows.append(_flatness(f"journaled on {database}, last ten of {case} to the first", figures, case))
    least, most = (figures.of("agency", f"{count} steps", "stored") for count in (min(lengths), longest))
    assert least is not None and most is not None
    name = f"bytes stored a step on {database}, {longest} steps to {min(lengths)}"
    rows.append(Row(name, most / least, "times", FLAT))
    rows += _stored_less(database, figures, [count for count in lengths if count <= LONGEST_OF_PEERS])
    return rows


def _step(database: str, figures: Figures, count: int) -> Row:
    case = f"{count} steps"
    ours = figures.of("agency", case, "step")
    assert ours is not None
    measured = {peer: figures.of(peer, case, "step") for peer in PEERS}
    return Row(
        f"a journaled step of {count} on {database}, two commits",
        ours,
        "ms",
        TARGETS[database],
        figures.of("bare", case, "step"),
        {peer: value for peer, value in measured.items() if value is not None},
    )


def _flatness(name: str, figures: Figures, case: str) -> Row:
    def flat(subject: str) -> float | None:
        first, last = (figures.of(subject, case, what) for what in ("first", "last"))
        return None if first is None or last is None else last / first

    ours = flat("agency")
    assert ours is not None
    return Row(name, ours, "times", FLAT, flat("bare"))


def _stored_less(database: str, figures: Figures, lengths: Sequence[int]) -> list[Row]:
    """How many times our storage LangGraph's needs, at the longest run that both did."""
    if not lengths:
        return []
    case = f"{max(lengths)} steps"
    ours, theirs = (figures.of(name, case, "stored") for name in ("agency", "langgraph-postgres"))
    if not ours or theirs is None:
        return []
    name = f"stored by LangGraph for {max(lengths)} steps on {database} to ours"
    return [Row(name, theirs / ours, "times", TIMES_LESS_STORED, more_is_better=True)]
