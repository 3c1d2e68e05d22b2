"""How a process of ours ends: when a signal asks it to, and without waiting for what does not stop."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable


def end_now(status: int) -> None:
    """End this process, and the programs of its tools, without waiting for threads that do not stop."""
    if processes := sys.modules.get("agency.agent.processes"):
        processes.end_processes()
    logging.shutdown()
    os._exit(status)


def end_on_signal(stop: Callable[[], None]) -> None:
    """Call `stop` on SIGTERM and Ctrl-C: on another thread, since the interrupted one may hold its locks."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=stop).start())
