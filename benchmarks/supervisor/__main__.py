"""`make bench-supervisor`: how well models decide on loops, with the shipped prompt and with the bare schema.

Prints accuracy and confusion for each model, the held-out half apart, and writes `supervisor.json` into
the state directory. Answers are kept there too, so that a run that was ended goes on where it was.
"""

import argparse
import json
import os
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
from agency.mission.loop import LoopDecision, evaluate_loop_decision
from benchmarks.supervisor import score
from benchmarks.supervisor.cases import HALVES, Case, load, short_ones
from benchmarks.supervisor.raw import StatusBranches, raw_request
from benchmarks.supervisor.remembered import Remembered, answers_of
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
        client = Remembered(resolve_model(model), answers_of(model))
        answers = {
            way: list(_answers(model, client, way, cases, console))
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
    parser.add_argument(
        "--halves", nargs="+", default=("tuned", "held_out"), choices=HALVES, help="which transcripts"
    )
    parser.add_argument("--fast", action="store_true", help="twenty short cases")
    parser.add_argument("--only-ours", action="store_true", help="without the raw baseline")
    return parser.parse_args(argv)


def _answers(
    model: str, client: Remembered, way: str, cases: list[Case], console: Console
) -> Iterator[Answer]:
    for number, case in enumerate(cases, start=1):
        client.restart()
        decided = _decide(client, model, way, case)
        answer = Answer(case, decided, client.seconds)
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
        "injection_difference": score.twins_differ(held_out),
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
        held_out = score.of_half(given, "held_out")
        told = {
            "tuned": score.share(score.of_half(given, "tuned")),
            "held out": score.share(held_out),
            "of it blocked found": score.recall(held_out, DecisionStatus.BLOCKED),
            "false completes": score.false_completes(held_out),
            "lost by injections": score.twins_differ(held_out),
            "claims that are not true": score.share(score.tagged(held_out, "false_claim")),
            "last iteration": score.share(score.tagged(held_out, "last_iteration")),
        }
        figures = " · ".join(
            f"{name} {value:.0%}" if value is not None else f"{name} –" for name, value in told.items()
        )
        console.print(f"{way}: {figures}")


if __name__ == "__main__":
    main()
