"""Says of a run's figures whether they are accepted, and what is missed."""

from collections.abc import Iterable

from tests.faults.harness.checker import Figures, faulty
from tests.faults.harness.spec import Spec

CANCEL = 2.0
ANSWERED = 1.0
REFUSED = 0.05
"""The share of requests that a provider with a limit may have to refuse."""


def missed(spec: Spec, figures: Figures) -> list[str]:
    """What keeps the run from being accepted, one short text each; empty is good."""
    return [*faulty(figures), *_not_struck(spec, figures), *_too_much(spec, figures)]


def _not_struck(spec: Spec, figures: Figures) -> Iterable[str]:
    """A zero without proof that the fault has struck is worth nothing."""
    for fault, times in spec.faults.items():
        if figures.exercised.get(fault, 0) < times * 0.9:
            yield f"{fault} struck {figures.exercised.get(fault, 0)} times of {times}"
    for fault in spec.provider_faults:
        if not figures.exercised.get(f"provider_{fault}"):
            yield f"the provider gave no {fault}"
    if spec.crowd and figures.answers_given < spec.executions * (spec.crowd - 1):
        yield "the requests were not answered by all at once"
    if spec.duplicates and figures.exercised.get("duplicate_wake_up", 0) < spec.executions:
        yield "wake-ups were not duplicated"
    if spec.rejects and not figures.rejected_writes:
        yield "no late write was refused, so nothing shows that one would be"


def _too_much(spec: Spec, figures: Figures) -> Iterable[str]:
    if spec.recovery is not None:
        share, seconds = (50, figures.recovery_p50_s) if spec.typical else (95, figures.recovery_p95_s)
        yield from _over(f"recovery p{share}", seconds, spec.recovery)
    if spec.hanging:
        yield from _over("cancel p95", figures.cancel_p95_s, CANCEL)
    if spec.crowd:
        yield from _over("answer to next claim p95", figures.answered_p95_s, ANSWERED)
    if spec.no_extra_calls and figures.provider_calls != figures.provider_needed:
        yield f"{figures.provider_calls - figures.provider_needed} extra provider calls"
    if spec.provider.get("rate") and figures.refused_share > REFUSED:
        yield f"{figures.refused_share:.1%} of the requests were answered 429"


def _over(what: str, seconds: float | None, most: float) -> Iterable[str]:
    if seconds is None:
        yield f"{what} was not measured"
    elif seconds > most:
        yield f"{what} {seconds:.2f} s > {most:g} s"
