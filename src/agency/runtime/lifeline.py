"""Ties a process to the supervisor that started it: it dies with it, and tells it that it is well.

Without a supervisor (its environment variables are absent) `beat` and `tie` do nothing: any entry point
may call them.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

PARENT = "AGENCY_SUPERVISOR_PID"
BEAT = "AGENCY_BEAT_FD"
ALIVE = "AGENCY_ALIVE_FILE"
GRACE = 4.0
PR_SET_PDEATHSIG = 1


def beat() -> None:
    """Say "ready and well". The supervisor restarts a process that said it once and then falls silent.

    Another one may watch the time of the file that `AGENCY_ALIVE_FILE` names: it is touched each time.
    """
    if path := os.environ.get(ALIVE):
        with contextlib.suppress(OSError):
            Path(path).touch()
    if descriptor := os.environ.get(BEAT):
        with contextlib.suppress(OSError):
            os.write(int(descriptor), b".")


def tie() -> None:
    """End this process when its supervisor is gone: by SIGTERM first, by force after `GRACE` seconds."""
    if PARENT not in os.environ:
        return
    _die_with_parent()
    threading.Thread(target=_watch, name="lifeline", daemon=True).start()


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(os.environ[PARENT]):
        os._exit(1)


def _watch() -> None:
    """Standard input is a pipe that nobody writes to: its end means that the supervisor is gone."""
    _await_end_of_input()
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _await_end_of_input() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass


def main(command: list[str]) -> int:
    """Become `command`, tied to the supervisor, for a program that knows nothing of lifelines."""
    _die_with_parent()
    if sys.platform == "linux":
        os.execv(command[0], command)
    return _keep(command)


def _keep(command: list[str]) -> int:
    """Where the kernel ends no orphans, stay as the program's parent and do it here."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.terminate())

    def end_with_parent() -> None:
        _await_end_of_input()
        process.terminate()

    threading.Thread(target=end_with_parent, daemon=True).start()
    status = process.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
