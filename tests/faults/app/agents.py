"""Agents whose tools write down that they were called, so that a test can count across processes."""

import os
import signal
import time
from pathlib import Path

from agency.agent import BaseAgent, Effect, run_process, tool
from agency.agent.builtins import ask_human
from agency.agent.injection import ToolCallInfo
from agency.execution import ToolScratchpad

BILL = "AGENCY_TEST_BILL"


def note(what: str) -> int:
    """Write a line into the file that `AGENCY_TEST_BILL` names; returns how often it is there now.

    Appends of this size are atomic.
    """
    path = Path(os.environ[BILL])
    with path.open("a") as bill:
        bill.write(f"{what}\n")
    return path.read_text().splitlines().count(what)


@tool(effect=Effect.IDEMPOTENT)
def jot(text: str, scratchpad: ToolScratchpad, info: ToolCallInfo) -> str:
    """Write a text down.

    Args:
        text: what to write down
    """
    note(f"jot {info.idempotency_key}")
    scratchpad.record("jotted", text)
    return f"noted {text}"


@tool(effect=Effect.IDEMPOTENT)
def hang(info: ToolCallInfo) -> str:
    """Never come back the first time; at once when the same call is made again."""
    if note(f"hang {info.idempotency_key}") > 1:
        return "back again"
    while not info.cancelled:
        time.sleep(0.02)
    return "given up"


@tool
def pay(amount: int, info: ToolCallInfo) -> str:
    """Do what must not be done twice.

    Args:
        amount: how much
    """
    note(f"pay {amount}")
    while not info.cancelled:
        time.sleep(0.02)
    return "paid"


@tool(effect=Effect.IDEMPOTENT)
def linger(info: ToolCallInfo) -> str:
    """Take a little time."""
    note(f"linger {info.idempotency_key}")
    time.sleep(0.5)
    return "there"


@tool(effect=Effect.IDEMPOTENT)
def die(info: ToolCallInfo) -> str:
    """Take the process along, as what eats all memory does."""
    note(f"die {info.idempotency_key}")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never said"


@tool(effect=Effect.IDEMPOTENT)
def sulk(info: ToolCallInfo) -> str:
    """Come back only when the file `free` lies beside the bill, whoever asks."""
    note(f"sulk {info.idempotency_key}")
    while not Path(os.environ[BILL]).with_name("free").exists():
        time.sleep(0.02)
    return "well then"


@tool(requires_confirmation=True)
def spend(amount: int, info: ToolCallInfo) -> str:
    """Do what a person must agree to; an amount of 666 takes for ever the first time.

    Args:
        amount: how much
    """
    often = note(f"spend {amount}")
    while amount == 666 and often == 1 and not info.cancelled:
        time.sleep(0.02)
    return f"spent {amount}"


@tool(effect=Effect.IDEMPOTENT)
def spawn(info: ToolCallInfo) -> str:
    """Run a program that starts another one and never ends."""
    script = f"sleep 600 & echo spawned $$ >> {os.environ[BILL]}; echo spawned $! >> {os.environ[BILL]}; wait"
    return run_process(["sh", "-c", script], info).output


class Clerk(BaseAgent):
    AGENT_KEY = "fault-clerk"
    NAME = "Fault clerk"
    SYSTEM_PROMPT = "Do what you are told."
    TOOLS = [jot, hang, pay, linger, die, sulk, spend, ask_human, spawn]
    DEFAULT_MODEL = "scripted:tests.faults.app.models:model"
