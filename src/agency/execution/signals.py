"""What the domain announces inside a transaction or after a commit; the runtime and projects listen.

The domain never enqueues: it says `execution_due`, and the runtime sends a wake-up after the commit.
"""

from django.dispatch import Signal

execution_due = Signal()
"""Sent inside the writing transaction. Arguments: `execution_id` (str), `expected_iteration` (int)."""

execution_finished = Signal()
"""Sent after the commit of a terminal state, robustly. Arguments: `execution` (the row).

At least once: where the process dies before its listeners are done, the sweep of another one sends it again
a minute later. Connect listeners in `AppConfig.ready()`, so that every process has them.
"""
