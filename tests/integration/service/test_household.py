"""Real child processes: order, restarts, last words, and nothing left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agency.runtime import household as households
from agency.runtime.household import GaveUp, Household
from agency.runtime.program import Program

WITHIN = 60.0
BEAT = "from agency.runtime import lifeline; lifeline.tie(); lifeline.beat()"
FOREVER = "import threading; threading.Event().wait()"


def python(*lines: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-c", "\n".join(lines))


class Family:
    """A household with what it said."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.household = Household(dict(os.environ), lambda name, line: self.said.append((name, line)))

    def until(self, happened) -> None:
        end = time.monotonic() + WITHIN
        while not happened():
            assert time.monotonic() < end, self.said
            self.household.turn()

    def heard(self, name: str, text: str) -> bool:
        return any(who == name and text in line for who, line in self.said)

    def process(self, name: str):
        return self.household.children[name].process


@pytest.fixture
def family():
    family = Family()
    with family.household.listening(then=lambda: None):
        yield family
        family.household.hurry()
        family.household.stop(1)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def gone(pid: int) -> bool:
    end = time.monotonic() + WITHIN
    while alive(pid) and time.monotonic() < end:
        os.sched_yield()
    return not alive(pid)


def test_a_program_is_ready_when_it_beats(family):
    family.household.add(Program("a", python(BEAT, FOREVER)))
    family.until(family.household.ready)


def test_a_program_that_knows_no_beats_is_ready_when_its_probe_says_so(family, tmp_path):
    mark = tmp_path / "mark"
    family.household.add(Program("a", python(f"open({str(mark)!r}, 'w')", FOREVER), ready=mark.exists))
    family.until(family.household.ready)
    assert mark.exists()


def test_a_program_starts_only_when_those_it_needs_are_ready(family, tmp_path):
    (tmp_path / "gate").touch()
    waits = f"import os\nwhile os.path.exists({str(tmp_path / 'gate')!r}): pass"
    family.household.add(Program("first", python("print('up', flush=True)", waits, BEAT, FOREVER)))
    family.household.add(Program("second", python(BEAT, FOREVER), after=("first",)))
    family.until(lambda: family.heard("first", "up"))
    family.household.turn()
    assert family.process("second") is None
    (tmp_path / "gate").unlink()
    family.until(lambda: family.household.ready("second"))


def test_every_line_is_passed_on_with_its_programs_name_also_the_last_one(family):
    says = "import sys; print('one'); sys.stderr.write('two\\n'); sys.stdout.write('last words')"
    family.household.add(Program("a", python(says)))
    family.until(lambda: family.heard("a", "ended (exit status 0)"))
    assert {line for who, line in family.said if who == "a"} >= {"one", "two", "last words"}


def test_a_line_that_is_for_the_supervisor_alone_is_not_shown(family):
    heard: list[str] = []

    def hears(line: str) -> bool:
        heard.append(line)
        return line.startswith("secret")

    says = "print('secret 42'); print('plain', flush=True)"
    family.household.add(Program("a", python(says, FOREVER), hears=hears))
    family.until(lambda: family.heard("a", "plain"))
    assert heard == ["secret 42", "plain"]
    assert not family.heard("a", "42")


def test_a_killed_program_starts_again(family):
    family.household.add(Program("a", python(BEAT, FOREVER)))
    family.until(family.household.ready)
    first = family.process("a").pid
    os.kill(first, signal.SIGKILL)
    family.until(lambda: family.process("a") and family.process("a").pid != first)
    assert family.heard("a", "ended (SIGKILL); starts again in 0.5 s")


def test_the_pause_before_a_restart_doubles(family, monkeypatch):
    monkeypatch.setattr(households, "FIRST_BACKOFF", 0.01)
    family.household.add(Program("a", python("raise SystemExit(3)")))
    with pytest.raises(GaveUp, match="a ended 5 times before it was ready"):
        family.until(lambda: False)
    pauses = [line.rpartition(" in ")[2] for _, line in family.said if "starts again" in line]
    assert pauses == ["0.01 s", "0.02 s", "0.04 s", "0.08 s"]


def test_a_misconfigured_program_is_not_started_again_and_its_sentence_is_the_reason(family):
    family.household.add(Program("a", python("print('set X to 1', flush=True)", "raise SystemExit(78)")))
    with pytest.raises(GaveUp, match=r"^set X to 1$"):
        family.until(lambda: False)


def test_a_program_that_beat_once_and_falls_silent_is_restarted(family, monkeypatch):
    monkeypatch.setattr(households, "SILENT_AFTER", 0.2)
    family.household.add(Program("a", python(BEAT, FOREVER)))
    family.until(family.household.ready)
    family.until(lambda: family.heard("a", "does not answer"))
    family.until(lambda: family.heard("a", "starts again"))


def test_stopping_asks_first_and_kills_what_does_not_end(family):
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    family.household.add(Program("deaf", python(deaf, BEAT, FOREVER)))
    family.household.add(Program("polite", python(BEAT, FOREVER)))
    family.until(family.household.ready)
    pids = [family.process(name).pid for name in ("deaf", "polite")]
    began = time.monotonic()
    family.household.stop(1.0)
    assert time.monotonic() - began < WITHIN / 2
    assert [alive(pid) for pid in pids] == [False, False]
    assert [who for who, line in family.said if "killed" in line] == ["deaf"]


def test_the_last_programs_end_after_the_others(family, tmp_path):
    log = tmp_path / "log"
    notes = (
        "import signal, sys\n"
        "def end(*_):\n"
        f"    open({str(log)!r}, 'a').write(sys.argv[1] + ' ')\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)"
    )
    for name, last in (("broker", True), ("web", False), ("worker", False)):
        family.household.add(Program(name, (*python(notes, BEAT, FOREVER), name), last=last))
    family.until(family.household.ready)
    family.household.stop(WITHIN)
    assert log.read_text().split()[-1] == "broker"


def test_what_a_program_started_ends_with_it(family):
    child = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {FOREVER!r}])"
    family.household.add(Program("a", python(child, "print(p.pid, flush=True)", BEAT, FOREVER)))
    family.until(family.household.ready)
    family.until(lambda: any(line.isdigit() for _, line in family.said))
    grandchild = next(int(line) for _, line in family.said if line.isdigit())
    family.household.stop(2.0)
    assert gone(grandchild)


@pytest.mark.parametrize("deaf", [False, True], ids=["polite", "deaf to SIGTERM"])
def test_a_killed_supervisor_leaves_no_child(tmp_path, deaf):
    ignoring = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" if deaf else ""
    program = python(ignoring, "import os; print(os.getpid(), flush=True)", BEAT, FOREVER)
    foreign = (sys.executable, "-P", "-m", "agency.runtime.lifeline", "/bin/sleep", "1000")
    supervisor = python(
        "import os, sys, threading",
        "from agency.runtime.household import Household",
        "from agency.runtime.program import Program",
        "h = Household(dict(os.environ), lambda name, line: print(line, flush=True))",
        f"h.add(Program('tied', {program!r}))",
        f"h.add(Program('foreign', {foreign!r}, ready=lambda: True))",
        "while not h.ready(): h.turn()",
        "print(h.children['foreign'].process.pid, flush=True)",
        "while True: h.turn()",
    )
    process = subprocess.Popen(supervisor, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(process.stdout.readline()) for _ in range(2)]
    process.kill()
    process.wait()
    process.stdout.close()
    assert [gone(pid) for pid in pids] == [True, True]


def test_where_the_kernel_ends_no_orphans_the_lifeline_does_it():
    elsewhere = python(
        "import sys; sys.platform = 'elsewhere'",
        "from agency.runtime import lifeline",
        "sys.exit(lifeline.main([sys.executable, '-c', "
        f"{'import os; print(os.getpid(), flush=True); ' + FOREVER!r}]))",
    )
    environ = {**os.environ, "AGENCY_SUPERVISOR_PID": str(os.getpid())}
    keeper = subprocess.Popen(
        elsewhere, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    program = int(keeper.stdout.readline())
    keeper.stdin.close()
    assert keeper.wait(WITHIN) == 128 + signal.SIGTERM
    assert gone(program)
    keeper.stdout.close()
