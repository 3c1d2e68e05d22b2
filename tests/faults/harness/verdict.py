"""Says of a run's figures whether they are accepted, and what is missed."""

from tests.faults.harness.checker import Figures, faulty
from tests.faults.harness.spec import Spec

CANCEL = 2.0


def missed(spec: Spec, figures: Figures) -> list[str]:
    """What keeps the run from being accepted, one short text each; empty is good."""
    found = list(faulty(figures))
    for fault, times in spec.faults.items():
        if figures.exercised.get(fault, 0) < times * 0.9:
            found.append(f"{fault} struck {figures.exercised.get(fault, 0)} times of {times}")
    for fault in spec.provider_faults:
        if not figures.exercised.get(f"provider_{fault}"):
            found.append(f"the provider gave no {fault}")
    if spec.duplicates and figures.exercised.get("duplicate_wake_up", 0) < spec.executions:
        found.append("wake-ups were not duplicated")
    if spec.rejects and not figures.rejected_writes:
        found.append("no late write was refused, so nothing shows that one would be")
    if spec.recovery is not None:
        found += _over("recovery p95", figures.recovery_p95_s, spec.recovery)
    if spec.hanging:
        found += _over("cancel p95", figures.cancel_p95_s, CANCEL)
    if spec.no_extra_calls and figures.provider_calls != figures.provider_needed:
        found.append(f"{figures.provider_calls - figures.provider_needed} extra provider calls")
    return found


def _over(what: str, seconds: float | None, most: float) -> list[str]:
    if seconds is None:
        return [f"{what} was not measured"]
    return [f"{what} {seconds:.2f} s > {most:g} s"] if seconds > most else []
