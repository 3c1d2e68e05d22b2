"""`agency demo`: the main job on real documents with a real model, through the real service."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

import agency
from agency.cli import demo_mission, project, report
from agency.cli.output import AsJson, complain, console, print_json
from agency.cli.progress import Line, follow
from agency.cli.served import service
from agency.enums import EventKind, ExecutionStatus, Verdict
from agency.errors import ConfigurationError

if TYPE_CHECKING:
    from agency.cli.client import Client

KEY = "extract-records"
APPS = ("records", demo_mission.APP)
TOKEN_NAME = "agency demo"


def demo(as_json: AsJson = False) -> None:
    """Read nine office documents with a language model, check every value; then have a mission file two.

    Starts the service in this home, submits through its API, ends by itself and keeps the results.
    """
    from agency.cli.client import Client

    began = time.monotonic()
    out = console(quiet=as_json)
    examples = _examples()
    _use(examples)
    samples = import_module("records.samples").samples()
    model = _model(out)
    project.setup()
    home = project.home()
    target = home.path / "demo" / "report.json"
    with service(home.path / "demo" / "service.log", os.environ) as url, _token() as secret:
        set_up = time.monotonic()
        out.print(f"{len(samples)} documents go to {url}, one execution each.\n")
        client = Client(url, secret)
        ended = run(client, samples, out)
        expected = {sample.name: sample.expected for sample in samples}
        so_far = time.monotonic() - set_up
        told = report.build(model, expected, ended, setup_s=set_up - began, total_s=so_far)
        report.write(target, told)
        if not as_json:
            report.show(out, told)
            _show_trace(out, told)
        told["mission"] = demo_mission.run(client, out)
        told["total_s"] = round(time.monotonic() - set_up, 1)
    report.write(target, told)
    if as_json:
        print_json(told)
    else:
        report.show_mission(out, told["mission"])
        _farewell(out, target)
    raise typer.Exit(_verdict(told))


def _verdict(told: dict[str, Any]) -> int:
    """An honest failure of some documents is part of the demo; of all, or of the mission, is an error."""
    rows, mission = told["executions"], told["mission"]
    if not any(row["status"] == ExecutionStatus.FINISHED for row in rows):
        return complain(f"No document was finished. {rows[0]['failure_code']}: {rows[0]['failure_summary']}")
    if mission["status"] != ExecutionStatus.FINISHED:
        return complain(f"The mission was not completed: {mission['loop_status'].replace('_', ' ')}.")
    return 0


def _examples() -> Path:
    """The checkout's `examples/`: beside the working directory's files, or beside an editable install."""
    checkout = Path(agency.__path__[0]).resolve().parents[1]
    for root in (Path.cwd(), checkout):
        if (root / "examples" / "records" / "documents").is_dir():
            return (root / "examples").resolve()
    raise ConfigurationError(
        "The demo's documents are in the source repository, under examples/records. "
        "Clone it and run `make demo` there."
    )


def _use(examples: Path) -> None:
    """Install the demo's Django apps, for this process and for the service that it starts."""
    named = [name.strip() for name in os.environ.get("AGENCY_APPS", "").split(",")]
    os.environ["AGENCY_APPS"] = ",".join(dict.fromkeys([*filter(None, named), *APPS]))
    os.environ.setdefault("AGENCY_APPS_DIR", str(examples))
    os.environ.setdefault("AGENCY_PORT", "0")
    sys.path.append(str(examples))


def _model(out: Console) -> str:
    """The model of the demo, if it can be had. A local one is fetched now, where its progress is seen."""
    from agency.agent.providers import choose_model
    from agency.agent.providers.weights import locate
    from agency.cli.doctor.model import examine

    choice = choose_model(os.environ)
    out.print(choice.reason)
    if faults := [finding for finding in examine() if not finding.ok]:
        raise ConfigurationError(f"{faults[0].detail}: {faults[0].fix}")
    if choice.name.startswith("local:"):
        # It answers one call at a time, and fastest when the call goes on where the last one ended.
        os.environ.setdefault("AGENCY_WORKER_THREADS", "1")
        locate(choice.name.removeprefix("local:"))
    return choice.name


@contextlib.contextmanager
def _token() -> Iterator[str]:
    """A token for the while; what is left of it afterwards opens nothing."""
    from agency.models import ApiToken

    token, secret = ApiToken.issue(project.local_user(), TOKEN_NAME)
    try:
        yield secret
    finally:
        token.delete()


@dataclass
class Watched:
    """One document's execution as the demo follows it."""

    document: str
    id: str
    seen: int = 0
    doing: str = ""
    attempt: int = 1
    tokens: int = 0
    row: dict[str, Any] = field(default_factory=dict)


def run(client: "Client", samples: list[Any], out: Console) -> dict[str, dict[str, Any]]:
    """Submit all documents, show the progress, and give the ended executions by document."""
    agent = client.agent_for(KEY)
    accepted = client.submit_batch(agent, KEY, [sample.input for sample in samples])
    watched = [
        Watched(sample.name, row["id"], row=row) for sample, row in zip(samples, accepted, strict=True)
    ]
    try:
        follow(out, lambda: _look(client, accepted[0]["batch"], watched))
    except KeyboardInterrupt:
        out.print("Stopping: what has not ended is cancelled.")
        for item in watched:
            client.cancel(item.id)
        raise
    return {item.document: client.execution(item.id) for item in watched}


def _look(client: "Client", batch: str, watched: list[Watched]) -> list[Line]:
    rows = {row["id"]: row for row in client.batch(batch)}
    for item in watched:
        item.row = rows[item.id]
        if item.row["event_seq"] > item.seen:
            _read_on(client, item)
    return [_line(item) for item in watched]


def _read_on(client: "Client", item: Watched) -> None:
    """What the new events say of the run: its attempt, what it does, the tokens so far."""
    page = client.events(item.id, item.seen)
    item.seen = page["after"]
    for event in page["items"]:
        usage = event["usage"] or {}
        item.tokens += usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        if event["kind"] == EventKind.ATTEMPT_COMPLETED:
            again = event["data"]["verdict"] == Verdict.RETRY
            item.attempt = event["data"]["attempt"] + again
            item.doing = f"{'again' if again else 'gives up'}: {event['data'].get('feedback') or ''}"
        elif event["content"]:
            item.doing = _said(event["content"][-1]) or item.doing


def _said(content: dict[str, Any]) -> str:
    if content["type"] == "tool_call":
        return f"calls {content['name']}"
    if content["type"] == "tool_result":
        return str(content["content"])
    return "reads" if content.get("role") == "user" else content.get("content", "")


def _line(item: Watched) -> Line:
    row = item.row
    ended = row["finished_at"] is not None
    return Line(
        id=item.id,
        label=item.document,
        status=row["status"],
        attempt=row["current_iteration"] if ended else item.attempt if row["started_at"] else 0,
        doing=(row["failure_summary"] or "") if ended else " ".join(item.doing.split()),
        tokens=item.tokens,
        took=_took(row),
    )


def _took(row: dict[str, Any]) -> float | None:
    now = datetime.now(UTC).isoformat()
    return report.seconds(row["started_at"], row["finished_at"] or now)


def _show_trace(out: Console, told: dict[str, Any]) -> None:
    """The story of one execution: the one whose validators had most to say before it finished."""
    from agency.api.trace import execution_trace

    finished = [row for row in told["executions"] if row["status"] == ExecutionStatus.FINISHED]
    chosen = max(finished or told["executions"], key=lambda row: row["attempts"])
    out.print(Text(f"\nHow it went with {chosen['document']}", style="bold"))
    execution_trace(project.find_execution(chosen["id"]), file=sys.stdout)


def _farewell(out: Console, target: Path) -> None:
    out.print(f"\nReport: {target}")
    me = _command()
    out.print(f"Everything is kept. `{me} list`, `{me} show ID` and `{me} trace ID` look at it,")
    out.print("`make up` serves it at http://127.0.0.1:8765/api/docs.")


def _command() -> str:
    """The command as the user can type it here: its name, or its path where it is not on PATH."""
    found = shutil.which("agency")
    called = Path(sys.executable).parent / "agency"
    if (found and Path(found).samefile(called)) or not called.exists():
        return "agency"
    return os.path.relpath(called) if called.is_relative_to(Path.cwd()) else str(called)
