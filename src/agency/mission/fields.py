"""What may stand in a mission's fields, and how it is stored. Decides only."""

from collections.abc import Callable, Iterator
from typing import Any

from agency.agent.providers.resolve import PROVIDERS
from agency.agent.text import clean
from agency.mission.completion import registry as completion
from agency.models.mission import LONGEST_DELAY, MOST_ITERATIONS

Fault = tuple[str, str]
LONGEST_NAME = 200
LONGEST_TEXT = 100_000
LONGEST_MODEL = 300
MOST_CHECKS = 20
LARGEST = 10**9


def faults(given: dict[str, Any]) -> Iterator[Fault]:
    """The path and message of each field that does not fit; a field that nobody sets is one too."""
    for name, value in given.items():
        rule = _RULES.get(name)
        if rule is None:
            yield name, f"is no field of a mission that can be set; there are: {', '.join(_RULES)}"
        else:
            yield from ((f"{name}{path}", message) for path, message in rule(value))


def normal(given: dict[str, Any]) -> dict[str, Any]:
    """Fields that fit, as they are stored: a blank `loop_prompt` is none."""
    values = dict(given)
    if "name" in values:
        values["name"] = " ".join(values["name"].split())
    loop_prompt = values.get("loop_prompt")
    if loop_prompt is not None and not loop_prompt.strip():
        values["loop_prompt"] = None
    return values


def useless_checks(loop_prompt: str | None, checks: list[str]) -> Iterator[Fault]:
    """The fault of a mission that names checks and is no loop: nobody would ever claim a completion."""
    if checks and loop_prompt is None:
        message = "completion checks run after a supervisor's 'complete': add a loop_prompt, or drop them"
        yield "completion_checks", message


def _text(limit: int) -> Callable[[Any], Iterator[Fault]]:
    def rule(value: Any) -> Iterator[Fault]:
        if not isinstance(value, str) or not value.strip():
            yield "", "must be a text that is not blank"
        else:
            yield from _limited(value, limit)

    return rule


def _loop_prompt(value: Any) -> Iterator[Fault]:
    """Braces and placeholders that are not known stay text, so there is nothing else to refuse."""
    if value is None:
        return
    if not isinstance(value, str):
        yield "", "must be a text, or null for a mission that is no loop"
    else:
        yield from _limited(value, LONGEST_TEXT)


def _limited(value: str, limit: int) -> Iterator[Fault]:
    if len(value) > limit:
        yield "", f"has {len(value):,} characters; at most {limit:,} are taken"
    if clean(value) != value:
        yield "", "contains a NUL character or half of a surrogate pair"


def _whole(least: int, most: int) -> Callable[[Any], Iterator[Fault]]:
    def rule(value: Any) -> Iterator[Fault]:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            yield "", f"must be a whole number from {least} to {most}"

    return rule


def _model(value: Any) -> Iterator[Fault]:
    if not isinstance(value, str) or len(value) > LONGEST_MODEL:
        yield "", f"must be a text of at most {LONGEST_MODEL} characters"
        return
    provider, _, model = value.partition(":")
    if value and not (provider in PROVIDERS and model):
        yield "", f"write provider:model with one of {', '.join(PROVIDERS)}, or nothing for the agent's own"


def _checks(value: Any) -> Iterator[Fault]:
    if not isinstance(value, list) or len(value) > MOST_CHECKS:
        yield "", f"must be a list of at most {MOST_CHECKS} names of checks"
        return
    for n, name in enumerate(value):
        if not isinstance(name, str) or not name.strip():
            yield f"[{n}]", "must be the name of a check"
        elif name in value[:n]:
            yield f"[{n}]", f"{name!r} is there twice"
        elif name not in (known := completion.names()):
            yield f"[{n}]", f"there is no completion check {name!r}; known: {', '.join(known) or 'none'}"


_LIMITS: dict[str, tuple[type, ...]] = {
    "tokens": (int,),
    "cost": (int, float),
    "seconds": (int, float),
    "iteration_seconds": (int, float),
    "failed_turns": (int,),
}


def _limits(value: Any) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield "", f"must be an object with some of {', '.join(_LIMITS)}"
        return
    for name, limit in value.items():
        kinds = _LIMITS.get(name)
        if kinds is None:
            yield f".{name}", f"unknown; there are {', '.join(_LIMITS)}"
        elif isinstance(limit, bool) or not isinstance(limit, kinds) or not 0 < limit <= LARGEST:
            whole = "whole " if kinds == (int,) else ""
            yield f".{name}", f"must be a {whole}number above 0, at most {LARGEST:,}"


_RULES: dict[str, Callable[[Any], Iterator[Fault]]] = {
    "name": _text(LONGEST_NAME),
    "prompt": _text(LONGEST_TEXT),
    "loop_prompt": _loop_prompt,
    "max_iterations": _whole(1, MOST_ITERATIONS),
    "loop_delay_seconds": _whole(0, LONGEST_DELAY),
    "supervisor_model": _model,
    "completion_checks": _checks,
    "limits": _limits,
}
FIELDS = tuple(_RULES)
