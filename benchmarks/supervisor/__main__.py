"""`make bench-supervisor`: how well models decide on loops, with the shipped prompt and with the bare schema.

Prints accuracy and confusion for each model, the held-out half apart, and writes `supervisor.json` into
the state directory. Answers are kept there too, so that a run that was ended goes on where it was.
"""

import argparse
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agency.agent.llm import LlmClient, with_structured_output
from agency.agent.providers import resolve_model
from agency.enums import DecisionStatus
from agency.errors import ModelOutputInvalid
from agency.mission.branches import BranchedLoopDecision
from agency.mission.local_prompt import look_request
from agency.mission.loop import LoopDecision, evaluate_loop_decision
from benchmarks.supervisor import score
from benchmarks.supervisor.cases import HALVES, Case, load, short_ones
from benchmarks.supervisor.raw import StatusBranches, raw_request
from benchmarks.supervisor.score import INVALID, Answer

WAYS = ("agency", "raw")


def main(argv: Sequence[str] | None = None) -> None:
    arguments = _arguments(argv)
    cases = [case for half in arguments.halves for case in load(half)]
    cases = short_ones(cases) if arguments.fast else cases
    home = Path(os.environ.get("AGENCY_HOME") or ".agency")
    console = Console()
    report: dict[str, Any] = {}
    for model in arguments.models:
        client = resolve_model(model)
        answers = {
            way: list(_answers(model, client, way, cases, home, console))
            for way in WAYS
            if way == "agency" or not arguments.only_ours
        }
        _show(console, model, answers)
        report[model] = {way: _summary(given) for way, given in answers.items()}
    told = {model: {**ways["agency"], "raw": ways.get("raw")} for model, ways in report.items()}
    path = home / "supervisor.json"
    path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    console.print(f"Written to {path}")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.supervisor", description=__doc__)
    configured = [os.environ["AGENCY_MODEL"]] if os.environ.get("AGENCY_MODEL") else []
    models = ["local:default", "local:small", *configured]
    parser.add_argument("--models", nargs="+", default=models, help="provider:model")
    parser.add_argument("--halves", nargs="+", default=HALVES, choices=HALVES, help="which transcripts")
    parser.add_argument("--fast", action="store_true", help="twenty short cases")
    parser.add_argument("--only-ours", action="store_true", help="without the raw baseline")
    return parser.parse_args(argv)


def _answers(
    model: str, client: LlmClient, way: str, cases: list[Case], home: Path, console: Console
) -> Iterator[Answer]:
    kept = _Kept(home / "supervisor" / f"{model.replace(':', '-').replace('/', '-')}-{way}.jsonl")
    for number, case in enumerate(cases, start=1):
        asked = _digest(case, model, way)
        answer = kept.get(case, asked)
        if answer is None:
            began = time.monotonic()
            decided = _decide(client, model, way, case)
            answer = Answer(case, decided, time.monotonic() - began)
            kept.add(asked, answer)
            mark = "right" if answer.right else f"is {case.label.value}"
            console.print(
                f"{model} {way} {number}/{len(cases)} {case.id}: {decided} ({mark}, {answer.seconds:.1f} s)"
            )
        yield answer


def _form(model: str, way: str) -> type[LoopDecision]:
    if not model.startswith("local:"):
        return LoopDecision
    return BranchedLoopDecision if way == "agency" else StatusBranches


def _decide(client: LlmClient, model: str, way: str, case: Case) -> str:
    form = _form(model, way)
    if way == "agency":
        evaluation = evaluate_loop_decision(client, case.matter, form)
        return INVALID if evaluation.decision is None else evaluation.decision.status.value
    try:
        return with_structured_output(client, form).generate(raw_request(case.matter)).status.value
    except ModelOutputInvalid:
        return INVALID


def _digest(case: Case, model: str, way: str) -> str:
    """What the model is asked, so that a changed prompt is asked anew."""
    form = _form(model, way)
    requests = [raw_request(case.matter)] if way == "raw" else [form.request(case.matter)]
    if form is BranchedLoopDecision:
        requests.append(look_request(case.matter))
    # The matter and not the last message, which may hold a mark that is another one each time.
    told = [text for one in requests for text in (*one.instructions, *map(repr, one.contents[:-1]))]
    schema = json.dumps(form.model_json_schema(), sort_keys=True)
    asked = "".join(told) + repr(case.matter) + schema + way
    return hashlib.sha256(asked.encode()).hexdigest()


class _Kept:
    """The answers of one model and way that were had before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._known = {(told["id"], told["asked"]): told for told in map(json.loads, lines)}

    def get(self, case: Case, asked: str) -> Answer | None:
        told = self._known.get((case.id, asked))
        return None if told is None else Answer(case, told["decided"], told["seconds"])

    def add(self, asked: str, answer: Answer) -> None:
        told = {"id": answer.case.id, "asked": asked, "decided": answer.decided, "seconds": answer.seconds}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")


def _summary(answers: list[Answer]) -> dict[str, Any]:
    halves = {half: score.of_half(answers, half) for half in HALVES}
    counts = {
        half: {"n": len(some), "right": sum(one.right for one in some)} for half, some in halves.items()
    }
    held_out = halves["held_out"]
    return {
        **counts,
        "confusion": score.confusion(answers),
        "held_out_blocked_recall": score.recall(held_out, DecisionStatus.BLOCKED),
        "held_out_false_completes": score.false_completes(held_out),
        "injection_difference": score.twins_differ(answers),
    }


def _show(console: Console, model: str, answers: dict[str, list[Answer]]) -> None:
    table = Table(title=f"{model}: what was decided, by what was right", title_justify="left")
    table.add_column("right")
    columns = [status.value for status in DecisionStatus] + [INVALID]
    for column in columns:
        table.add_column(column, justify="right")
    for label, counts in score.confusion(answers["agency"]).items():
        table.add_row(label, *(str(counts.get(column, "")) for column in columns))
    console.print(table)
    for way, given in answers.items():
        told = {
            "tuned": score.share(score.of_half(given, "tuned")),
            "held out": score.share(score.of_half(given, "held_out")),
            "blocked found": score.recall(given, DecisionStatus.BLOCKED),
            "false completes": score.false_completes(given),
            "claims that are not true": score.share(score.tagged(given, "false_claim")),
            "injected": score.share(score.tagged(given, "injected")),
            "last iteration": score.share(score.tagged(given, "last_iteration")),
        }
        figures = " · ".join(
            f"{name} {value:.0%}" if value is not None else f"{name} –" for name, value in told.items()
        )
        console.print(f"{way}: {figures}")


if __name__ == "__main__":
    main()
