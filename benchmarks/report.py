"""What the figures mean: rows with floor, peers and target, as a table and as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.rounds import AtLeast


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of ours beside the hand-written floor and the peers; `more_is_better` turns the target."""

    name: str
    value: float
    unit: str
    target: float | None = None
    floor: float | None = None
    peers: dict[str, float] = field(default_factory=dict)
    more_is_better: bool = False

    @property
    def ok(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.more_is_better else self.value <= self.target

    def as_json(self) -> dict[str, object]:
        told = {**asdict(self), "ok": self.ok}
        least = told.pop("more_is_better")
        if cut := {peer: value.steps for peer, value in self.peers.items() if isinstance(value, AtLeast)}:
            told["cut"] = cut  # these are lower bounds, from so many steps
        return {**told, "unit": f"{self.unit}, at least" if least else self.unit}


def write(rows: Sequence[Row], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps([row.as_json() for row in rows], indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def show(compared: Mapping[str, Sequence[float | None]], titles: Sequence[str], rows: Sequence[Row]) -> None:
    """First the libraries beside each other, the first line being ours; then what was aimed at."""
    console = Console()
    if not console.is_terminal:
        console.width = 120
    console.print(_comparison(compared, titles))
    console.print(_targets(rows))
    missed = [row.name for row in rows if row.ok is False]
    console.print(f"[bold red]Missed:[/] {'; '.join(missed)}" if missed else "[green]Every target is met.[/]")


def _comparison(compared: Mapping[str, Sequence[float | None]], titles: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Beside each other (how many times ours)", title_justify="left")
    table.add_column("")
    for title in titles:
        table.add_column(title, justify="right")
    ours = next(iter(compared.values()))
    for name, values in compared.items():
        cells = (_beside(value, one, values is ours) for value, one in zip(values, ours, strict=True))
        table.add_row(name, *cells, style="bold" if values is ours else None)
    return table


def _targets(rows: Sequence[Row]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="What was aimed at", title_justify="left")
    table.add_column("")
    for title in ("agency", "target", "", "by hand"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("others")
    for row in rows:
        target = "" if row.target is None else f"{'≥' if row.more_is_better else '≤'} {_number(row.target)}"
        mark = {None: "", True: "[green]✓[/]", False: "[bold red]✗[/]"}[row.ok]
        floor = "" if row.floor is None else _number(row.floor)
        others = ", ".join(f"{peer} {_number(value)}" for peer, value in row.peers.items())
        table.add_row(f"{row.name}, {row.unit}", _number(row.value), target, mark, floor, others)
    return table


def _beside(value: float | None, ours: float | None, is_ours: bool) -> str:
    if value is None:
        return "–"
    if is_ours or not ours:
        return _number(value)
    said = f"{_number(value)} ({_number(value / ours)}×)"
    if not isinstance(value, AtLeast):
        return said
    return f"{said}, cut at {value.steps}" if value.steps else f"{said}, cut"


def _number(value: float) -> str:
    said = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"> {said}" if isinstance(value, AtLeast) else said
