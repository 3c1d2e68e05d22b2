"""Who this process is, and whether another one is still alive: a hint for fast recovery, never a proof.

An owner is `machine|pid|start|random`, and on PostgreSQL the number of its `hint` after it. A process
on the same machine (and in the same process namespace) is judged by its pid, another one by that number;
where neither says anything, the lease alone speaks.
"""

import os
import secrets
from functools import cache
from pathlib import Path

from agency.runtime.hint import hint

_PROC = Path("/proc")


def owner() -> str:
    """This process as an owner of claims: its name, and the number of its hint while it has one."""
    number = hint().number
    return name() + ("" if number is None else f"|{number}")


def name() -> str:
    """This process's own name: fresh for each process, also after a fork."""
    return _name_of(os.getpid())


@cache
def _name_of(pid: int) -> str:
    return "|".join((_machine(), str(pid), _start_of(pid), secrets.token_hex(4)))


def is_dead(owner: str) -> bool:
    """Whether the owner runs no more: its pid is free, or has another start, or its session is gone."""
    machine, pid, start, _, number, *_ = (*owner.split("|"), *[""] * 5)
    if pid.isdigit() and start and machine == _machine():
        return _start_of(int(pid)) != start
    return bool(number) and hint().is_gone(int(number))


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
