"""Who this process is, and whether another one is still alive: a hint for fast recovery, never a proof.

An owner is `machine|pid|start|random`. Only a process on the same machine (and in the same process
namespace) can be judged; of any other, the lease alone speaks.
"""

import os
import secrets
from functools import cache
from pathlib import Path

_PROC = Path("/proc")


def owner() -> str:
    """This process's name as an owner of claims: fresh for each process, also after a fork."""
    return _owner_of(os.getpid())


@cache
def _owner_of(pid: int) -> str:
    return "|".join((_machine(), str(pid), _start_of(pid), secrets.token_hex(4)))


def is_dead(owner: str) -> bool:
    """Whether the owner certainly runs no more: its pid is free on this machine, or has another start."""
    machine, pid, start, *_ = (*owner.split("|"), "", "", "")
    if not pid.isdigit() or not start or machine != _machine():
        return False
    return _start_of(int(pid)) != start


@cache
def _machine() -> str:
    """The boot of this machine and the process namespace, in which pids mean something."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot[:18]}:{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return "unknown"


def _start_of(pid: int) -> str:
    """The start time in clock ticks; empty where the process is gone, a zombie, or there is no /proc."""
    try:
        after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if after_name[0] == "Z" else after_name[19]
