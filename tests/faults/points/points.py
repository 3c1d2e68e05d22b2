"""The named places at which a process may die, wrapped from outside: the package itself has no such hooks.

`strike(point, nth)` arms one: the process ends without a word, as by kill -9, when it gets there for the
n-th time.
"""

import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

DEAD = 9


@dataclass(frozen=True, slots=True)
class Point:
    """`seam` is `module:name` of a function, and the process dies `when` it is called or has returned.

    `only` narrows the calls by their arguments. `times` is how often the errand of `test_points` gets
    there. `repeats` says what the next claimer must do once more, since nobody knows what came of it:
    nothing, the model's answer or the tool's effect.
    """

    seam: str
    when: Literal["before", "after"]
    times: int = 1
    repeats: Literal["", "model", "tool"] = ""
    only: Callable[..., bool] = lambda *_, **__: True


def _is_answer(journal: Any, key: str, *_: Any) -> bool:
    return key.endswith(":model")


def _is_tool(journal: Any, key: str, *_: Any) -> bool:
    """The only call of a step is recorded with the results of all."""
    return ":jot:" in key or key.endswith(":results")


_MODEL = "tests.faults.app.models:FollowsTheTask.generate"
_RECORD = "agency.runtime.journal:DbJournal.record"
_INTEND = "agency.runtime.journal:DbJournal.intend"
_CLOSE = "agency.runtime.journal:DbJournal.close_attempt"

RUNNING: dict[str, Point] = {
    "before_claim_commit": Point("agency.runtime.claim:_run", "before"),
    "after_claim": Point("agency.runtime.slots:claim", "after"),
    "before_model_call": Point(_MODEL, "before", 4),
    "after_answer_before_record": Point(_RECORD, "before", 4, "model", _is_answer),
    "after_record_before_tool": Point(_RECORD, "after", 4, only=_is_answer),
    "after_intent": Point(_INTEND, "after", 2, only=_is_tool),
    "after_effect_before_journal": Point(_RECORD, "before", 2, "tool", _is_tool),
    "after_journal": Point(_RECORD, "after", 2, only=_is_tool),
    "before_attempt_commit": Point(_CLOSE, "before"),
    "after_ledger": Point("agency.execution.store:advance", "after", 2),
    "after_attempt_commit": Point(_CLOSE, "after"),
    "before_finish": Point("agency.execution.store:finish", "before"),
    "inside_finish": Point("agency.execution.store:end", "after"),
    "after_finish_before_signal": Point("agency.execution.store:announce", "before"),
}
"""What a run passes from claim to end."""

ELSEWHERE: dict[str, Point] = {
    "after_commit_before_publish": Point("agency.runtime.queue:wake", "before"),
    "after_mark_before_publish": Point("agency.runtime.queue:wake", "before"),
    "before_release": Point("agency.execution.store:release", "before"),
    "inside_release": Point("agency.execution.store:update", "after"),
    "after_release": Point("agency.execution.store:release", "after"),
    "after_sweep": Point("agency.execution.store:make_due", "after"),
    "after_cancel_asked": Point("agency.execution.store:close_cancelled", "before"),
    "inside_cancel": Point("agency.execution.store:end", "after"),
    "before_park": Point("agency.execution.store:park", "before"),
    "inside_park": Point("agency.human.requests:open_request", "after"),
    "after_park": Point("agency.execution.store:park", "after"),
    "inside_answer": Point("agency.execution.resuming:resume", "after"),
    "after_answer_of_person": Point("agency.execution.answering:answer", "after"),
}
"""What other processes pass: who submits, dispatches, drains, sweeps, cancels, or asks and answers."""

STATEMENT = "statement"
"""A point for each statement and each commit of the thread that runs the execution."""


def strike(name: str, nth: int) -> None:
    """Arm the point in this process. Only calls from this thread count."""
    if name == STATEMENT:
        _wrap_statements(nth)
        return
    point = {**RUNNING, **ELSEWHERE}[name]
    module, _, path = point.seam.partition(":")
    *outer, attribute = path.split(".")
    holder = functools.reduce(getattr, outer, import_module(module))
    setattr(holder, attribute, _wrapped(getattr(holder, attribute), point, nth))


def _wrapped(original: Callable[..., Any], point: Point, nth: int) -> Callable[..., Any]:
    left = _Countdown(nth)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        counts = point.only(*args, **kwargs)
        if counts and point.when == "before":
            left.tick()
        result = original(*args, **kwargs)
        if counts and point.when == "after":
            left.tick()
        return result

    return call


class _Countdown:
    def __init__(self, nth: int) -> None:
        self._left = nth
        self._guard = threading.Lock()

    def tick(self) -> None:
        with self._guard:
            self._left -= 1
            if self._left == 0:
                os._exit(DEAD)


def _wrap_statements(nth: int) -> None:
    """Die before the n-th statement or commit, so that each state a run leaves in between is met."""
    from django.db import connection

    from agency.execution import append, ledger, record

    left = _Countdown(nth)

    def execute(run: Callable[..., Any], *rest: Any) -> Any:
        left.tick()
        return run(*rest)

    commit = connection.commit

    def counted_commit() -> None:
        left.tick()
        commit()

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            left.tick()
            added = write(*values)
            left.tick()
            return added

        return call

    connection.execute_wrappers.append(execute)
    connection.commit = counted_commit
    # These do not pass through Django's cursor.
    record.append = counted(append.append)
    ledger.written = counted(append.written)
