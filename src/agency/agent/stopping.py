"""How code deep inside a call knows that the run around it was cancelled, without being told of the run."""

from collections.abc import Callable
from contextvars import ContextVar

stop_signal: ContextVar[Callable[[], bool] | None] = ContextVar("stop_signal", default=None)
"""What a run polls to know whether it was cancelled; set around calls of models and tool servers."""
