"""What the domain announces inside a transaction or after a commit; the runtime and projects listen.

The domain never enqueues: it says `execution_due`, and the runtime sends a wake-up after the commit.
"""

from functools import partial

from django.db import transaction
from django.dispatch import Signal

execution_due = Signal()
"""Sent inside the writing transaction. Arguments: `execution_id` (str), `expected_iteration` (int), `wakeup`
(what it is due for, a `Wakeup`)."""

execution_finished = Signal()
"""Sent after the commit of a terminal state, robustly. Arguments: `execution` (the row).

At least once: where the process dies before its listeners are done, the sweep of another one sends it again
a minute later. Connect listeners in `AppConfig.ready()`, so that every process has them.
"""

events_written = Signal()
"""Sent after the commit that wrote events, robustly; not sent if the process dies before.

Arguments: `execution_id` (str), `first` and `last` (int): the numbers of the events.
"""


def say_written(using: str, execution_id: str, last: int, count: int = 1) -> None:
    """Say of `count` events, up to number `last`, that they are written, once they are."""
    if events_written.receivers:
        numbers = {"execution_id": execution_id, "first": last - count + 1, "last": last}
        transaction.on_commit(partial(events_written.send_robust, None, **numbers), using=using, robust=True)
