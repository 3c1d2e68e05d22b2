"""What is run where: sizes, faults and what is accepted, for each backend."""

from dataclasses import asdict, dataclass, field
from typing import Any

from tests.faults.harness.app.client import PATIENCE

BACKENDS = ("postgres+valkey", "postgres+rabbitmq", "postgres", "sqlite+valkey", "sqlite")
RUNS = ("F0", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "cancel")
OWN = 0.06
"""About what an attempt takes beside waiting for the model, in seconds."""
CALLS = 2.5
"""Model calls of an attempt; half of the orders are loops, whose supervisor is asked too."""
RATE = 12.0
"""Requests a second that the provider with a limit takes: fewer than the workers would make."""


@dataclass(slots=True)
class Spec:
    """One run on one backend.

    `executions` orders of `attempts` each by `workers` processes of `threads` slots, of which `spare` must
    be ready beside one that is struck. `agency` is added to the `AGENCY` setting; `provider` goes to the
    fake provider. `faults` says how often each is to strike, `gap` the least seconds between two, and
    `pace` about how many the work gives to each. `hanging` orders are never answered; they are cancelled.
    `duplicates` sends every wake-up again and again, up to `latest` seconds late. `crowd` people
    answer each request at once. `rejects` wants late
    writes to have been refused, and `provider_faults` are answers that must have been given. `recovery` is
    the most seconds from a strike to the next claim at p95, `None` where none is measured; `typical` holds
    the median to it, where there are too few strikes to speak of their twentieth.
    """

    run: str
    backend: str
    seed: int
    executions: int
    attempts: int
    workers: int = 4
    threads: int = 12
    spare: int = 2
    agency: dict[str, Any] = field(default_factory=dict)
    provider: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    gap: float = 0.4
    pace: float = 1.8
    environ: dict[str, str] = field(default_factory=dict)
    duplicates: bool = False
    latest: float = 30.0
    hanging: int = 0
    recovery: float | None = None
    typical: bool = False
    no_extra_calls: bool = False
    crowd: int = 0
    rejects: bool = False
    provider_faults: tuple[str, ...] = ()

    @property
    def has_broker(self) -> bool:
        return "+" in self.backend

    @property
    def is_sqlite(self) -> bool:
        return self.backend.startswith("sqlite")

    @property
    def room(self) -> int:
        """How many orders are open at once: the places left while a worker is away, but for a few."""
        return self.spare * self.threads - 2

    @property
    def latency(self) -> tuple[float, float]:
        """Of a model call: long enough for the strikes to come while there is work, and short enough else."""
        strikes = sum(self.faults.values())
        attempt = self.room * strikes * self.pace / self.iterations if self.iterations else 0.0
        mean = min(2.0, max(0.03, (attempt - OWN) / CALLS))
        return round(mean * 0.4, 3), round(mean * 1.6, 3)

    @property
    def iterations(self) -> int:
        return self.executions * self.attempts

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def applies(run: str, backend: str) -> bool:
    """Whether the run has something to strike at there."""
    if run == "F0":
        return "+" not in backend
    if run in {"F2", "F3"}:
        return "+" in backend
    if run == "F5":
        return backend.startswith("postgres")
    return True


def spec_for(run: str, backend: str, seed: int, size: str = "normal") -> Spec:
    """`size`: `small` for CI, `normal`, or `full`, which is the large one everywhere."""
    large = size == "full" or (size == "normal" and backend in {"postgres+valkey", "sqlite"})
    made = _MAKERS[run](run, backend, seed, size, large)
    made.typical = size == "small"
    if made.is_sqlite:
        # One writer at a time: more threads only wait for each other.
        made.workers, made.spare = min(3, made.workers), 1
    return made


def _kills(run: str, backend: str, seed: int, size: str, large: bool) -> Spec:
    executions, attempts, kills = {"small": (24, 6, 6)}.get(size, (200, 20, 66) if large else (60, 10, 22))
    faults = {"kill_worker": kills}
    if "+" in backend:
        faults["kill_dispatcher"] = max(1, kills // 10)
    return Spec(run, backend, seed, executions, attempts, faults=faults, recovery=3.0)


def _broker(run: str, backend: str, seed: int, size: str, large: bool) -> Spec:
    executions, attempts = _size(size, (60, 10), (200, 20))
    faults = (
        {"flush_broker": 10, "stop_broker": 5} if size == "full" else {"flush_broker": 3, "stop_broker": 2}
    )
    return Spec(run, backend, seed, executions, attempts, faults=faults, pace=8.0, no_extra_calls=True)


def _duplicates(run: str, backend: str, seed: int, size: str, large: bool) -> Spec:
    executions, attempts = _size(size, (60, 10), (200, 20))
    latest = {"small": 8.0, "normal": 20.0, "full": 30.0}[size]
    return Spec(run, backend, seed, executions, attempts, duplicates=True, latest=latest, no_extra_calls=True)


def _zombies(run: str, backend: str, seed: int, size: str, large: bool) -> Spec:
    executions, attempts = _size(size, (60, 10), (100, 20))
    stops = {"small": 5, "normal": 10 if large else 6, "full": 60}[size]
    made = Spec(run, backend, seed, executions, attempts, faults={"stop_worker": stops}, pace=3.0)
    made.agency = {"LEASE_SECONDS": 3.0, "BEAT_SECONDS": 0.5}
    made.recovery = 3.0 + 2.0
    made.rejects = True
    return made


def _database(run: str, backend: str, seed: int, size: str, large: bool) -> Spec:
    executions, attempts = _size(size, (60, 10), (100, 20))
    faults = (
        {"restart_database": 10, "cut_commit": 20}
        if size == "full"
        else {
            "restart_database": 4,
            "cut_commit": 10,
        }
    )
    return Spec(run, backend, seed, executions, attempts, faults=faults, no_extra_calls=True)


def _provider(run: str, backend: str, seed: int, size: str, large: bool) -> Spec:
    executions, attempts = _size(size, (30 if large else 16, 10), (50, 10))
    made = Spec(run, backend, seed, executions, attempts)
    shares = {"error": 0.03, "garbage": 0.03, "stall": 0.02}
    made.provider = {"shares": shares, "latency": (0.05, 0.25), "rate": RATE}
    made.environ = {PATIENCE: "3"}
    made.provider_faults = ("429", "500", "garbage", "stall")
    return made


def _deploys(run: str, backend: str, seed: int, size: str, large: bool) -> Spec:
    executions, attempts = _size(size, (60, 10), (100, 20))
    ends = {"small": 4, "normal": 8 if large else 5, "full": 20}[size]
    return Spec(
        run, backend, seed, executions, attempts, faults={"end_worker": ends}, pace=3.0, no_extra_calls=True
    )


def _cancels(run: str, backend: str, seed: int, size: str, large: bool) -> Spec:
    return Spec(run, backend, seed, 0, 1, hanging=20, workers=2)


def _people(run: str, backend: str, seed: int, size: str, large: bool) -> Spec:
    many = size == "full" or (large and not backend.startswith("sqlite"))
    requests = 40 if size == "small" else 200 if many else 60
    return Spec(run, backend, seed, requests, 2, workers=2, crowd=16)


def _size(size: str, normal: tuple[int, int], full: tuple[int, int]) -> tuple[int, int]:
    return {"small": (24, 6), "normal": normal, "full": full}[size]


_MAKERS = {
    "F1": _kills,
    "F2": _broker,
    "F3": _duplicates,
    "F4": _zombies,
    "F5": _database,
    "F6": _people,
    "F7": _provider,
    "F8": _deploys,
    "cancel": _cancels,
}
