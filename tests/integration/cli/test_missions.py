"""`agency mission`: missions are made, dispatched and told what to do from the terminal."""

import json
import shlex
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from rich.console import Console

from agency.agent import Usage
from agency.cli.project import local_user
from agency.cli.schedules import table
from agency.mission import schedules
from agency.mission.budget import Budget
from agency.mission.completion import BaseCompletionCheck, ClaimedCompletion
from agency.mission.completion import registry as completion
from agency.models import ConfiguredAgent, Execution, Mission
from agency.runtime.wiring import use_client
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, go_on, mission
from tests.integration.rows import waiting_row

pytestmark = pytest.mark.django_db
Agency = Callable[..., Any]
DONE = decision("complete", evidence="All are sorted.")
WAIT = decision("wait", wait={"signal": "stock", "what_for": "the new stock"})


@pytest.fixture
def clerk(db: None) -> ConfiguredAgent:
    return ConfiguredAgent.objects.create(owner=local_user(), name="Anna", agent_key="clerk")


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    with use_client(made):
        yield made


class Counted(BaseCompletionCheck):
    NAME = "counted"
    DESCRIPTION = "Every shelf is counted."

    def check(self, claimed: ClaimedCompletion) -> str | None:
        return None


def run(clerk: ConfiguredAgent, model: Model, *decisions: dict[str, Any], most: int = 5) -> Execution:
    """A loop, run until it ended or waits, with one more round for what comes then."""
    model.answers = [f"Answer {n}." for n in range(1, len(decisions) + 2)]
    model.decisions = [*decisions, DONE]
    return run_until_parked(mission(clerk, loop_prompt="Go on.", max_iterations=most).dispatch())


def test_an_empty_list_says_the_next_step(agency: Agency) -> None:
    assert "agency mission create NAME --prompt TEXT" in agency("mission", "list").out
    assert json.loads(agency("mission", "list", "--json").out) == []


def test_a_mission_is_created_with_everything_that_can_be_set(
    agency: Agency, clerk: ConfiguredAgent, tmp_path: Path
) -> None:
    (tmp_path / "loop.txt").write_text("Round {iteration}.", encoding="utf-8")
    called = agency(
        *("mission", "create", "Orders", "--prompt", "@-", "--agent", "Anna"),
        *("--loop", f"@{tmp_path / 'loop.txt'}", "--max-iterations", "7", "--delay", "5"),
        *("--supervisor", "local:default", "--limit", "tokens=5000", "--limit", "cost=0.5"),
        stdin="Sort all orders.",
    )
    assert (called.code, called.err[:6]) == (0, "agency")
    assert "Created Orders" in called.out and "a loop of at most 7 iterations" in called.out
    made = Mission.objects.get()
    assert (made.owner, made.agent) == (local_user(), clerk)
    assert (made.prompt, made.loop_prompt) == ("Sort all orders.", "Round {iteration}.")
    assert (made.max_iterations, made.loop_delay_seconds) == (7, 5)
    assert (made.supervisor_model, made.limits) == ("local:default", {"tokens": 5000, "cost": 0.5})


def test_an_agent_is_made_for_a_type_that_has_none_yet(agency: Agency) -> None:
    called = agency("mission", "create", "Orders", "--prompt", "Sort.", "--agent", "clerk", "--json")
    assert json.loads(called.out)["agent"] == str(ConfiguredAgent.objects.get(agent_key="clerk").pk)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--max-iterations", "0"), "max_iterations: must be a whole number from 1 to 100"),
        (("--max-iterations", "101"), "max_iterations: must be a whole number from 1 to 100"),
        (("--delay", "-1"), "loop_delay_seconds: must be a whole number from 0 to 86400"),
        (("--delay", "86401"), "loop_delay_seconds: must be a whole number from 0 to 86400"),
        (("--prompt", " "), "prompt: must be a text that is not blank"),
        (("--prompt", "@/no/such/file"), "No such file or directory: /no/such/file"),
        (("--check", "no-such"), "there is no completion check 'no-such'"),
        (("--supervisor", "gpt"), "write provider:model"),
        (("--limit", "tokens"), "--limit 'tokens' is no NAME=NUMBER"),
        (("--limit", "euros=5"), "limits.euros: unknown; there are tokens, cost"),
        (("--agent", "Nobody"), "There is no agent 'Nobody'. Agents: Anna; types: "),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_made(
    agency: Agency, clerk: ConfiguredAgent, arguments: tuple[str, ...], said: str
) -> None:
    called = agency("mission", "create", "Orders", "--prompt", "Sort.", "--agent", "Anna", *arguments)
    assert called.code == 2
    assert said.casefold() in called.err.casefold()
    assert not Mission.objects.exists()


def test_without_an_agent_the_types_are_named(agency: Agency) -> None:
    called = agency("mission", "create", "Orders", "--prompt", "Sort.")
    assert called.code == 2
    assert "Say which agent, with --agent. There are these types:" in called.err
    assert "clerk" in called.err


def test_missions_are_listed_and_shown(agency: Agency, clerk: ConfiguredAgent, model: Model) -> None:
    execution = run(clerk, model)
    agency("mission", "schedule", "add", "Orders", "30 8 * * *")
    listed = agency("mission", "list").out
    for part in ("Orders", "Anna", "loop ≤ 5", "08:30 UTC", str(execution.pk)[:8], "✓ completed"):
        assert part in listed
    shown = agency("mission", "show", "Orders").out
    for part in ("loop of at most 5 iterations", "Sort all orders.", "Go on.", "30 8 * * * (UTC)"):
        assert part in shown
    assert str(execution.pk)[:8] in shown
    told = json.loads(agency("mission", "show", "Orders", "--json").out)
    assert (told["name"], told["schedules"][0]["cron"]) == ("Orders", "30 8 * * *")


def test_a_mission_is_found_by_name_or_by_the_beginning_of_its_id(
    agency: Agency, clerk: ConfiguredAgent
) -> None:
    row = mission(clerk)
    assert json.loads(agency("mission", "show", str(row.pk)[:8], "--json").out)["id"] == str(row.pk)
    assert "There is no mission named 'Other'" in agency("mission", "show", "Other").err
    mission(clerk)
    assert "More than one mission is named 'Orders'" in agency("mission", "show", "Orders").err


def test_a_change_counts_for_later_dispatches(agency: Agency, clerk: ConfiguredAgent) -> None:
    row = mission(clerk, loop_prompt="Go on.")
    before = row.dispatch()
    called = agency("mission", "change", "Orders", "--loop", "", "--name", "Other", "--max-iterations", "3")
    assert called.out.strip() == "Other is changed, for its next dispatches."
    row.refresh_from_db()
    assert (row.name, row.loop_prompt, row.max_iterations) == ("Other", None, 3)
    before.refresh_from_db()
    assert before.max_iterations == 10
    assert "Say what to change" in agency("mission", "change", "Other").err


def test_a_removed_mission_is_gone_but_for_its_executions(agency: Agency, clerk: ConfiguredAgent) -> None:
    row = mission(clerk)
    row.dispatch()
    assert agency("mission", "remove", "Orders").out.strip() == "Removed Orders. Its executions stay."
    assert "No missions yet" in agency("mission", "list").out
    assert "Orders" in agency("mission", "list", "--archived").out
    refused = agency("mission", "dispatch", str(row.pk))
    assert (refused.code, "was removed" in refused.err) == (2, True)


def test_a_dispatch_prints_the_id_and_says_who_will_run_it(agency: Agency, clerk: ConfiguredAgent) -> None:
    mission(clerk)
    first = agency("mission", "dispatch", "Orders", "--key", "monday")
    execution = Execution.objects.get()
    assert first.out.strip() == str(execution.pk)
    assert "`agency up` (or a worker) runs it" in first.err
    assert f"agency watch {str(execution.pk)[:8]}" in first.err
    again = agency("mission", "dispatch", "Orders", "--key", "monday")
    assert again.out == first.out
    assert "The key was used before" in again.err
    other = json.loads(agency("mission", "dispatch", "Orders", "--json").out)
    assert (other["status"], other["trigger"]) == ("pending", {"by": "command"})


def test_executions_of_missions_are_listed_and_shown(
    agency: Agency, clerk: ConfiguredAgent, model: Model
) -> None:
    execution = run(clerk, model, go_on("Sort B."), WAIT)
    listed = agency("list", "--mission", "Orders").out
    for part in ("Orders", "◷ waiting", "2/5"):
        assert part in listed
    shown = agency("show", str(execution.pk)).out
    for part in ("iteration 1 of 5", "↻ continue", "Sort B.", "waits for the signal stock: the new stock"):
        assert part in shown
    assert f"agency mission signal {str(execution.pk)[:8]} stock" in shown


def test_a_signal_is_sent(agency: Agency, clerk: ConfiguredAgent, model: Model) -> None:
    execution = run(clerk, model, WAIT)
    me = str(execution.pk)[:8]
    kept = agency("mission", "signal", me, "other")
    assert kept.out.strip() == f"{me} keeps it for the next wait of that name."
    heard = agency("mission", "signal", me, "stock", "--payload", '{"pieces": 7}')
    assert heard.out.strip() == f"{me} goes on with it."
    assert execution.signals.get(name="stock").payload == {"pieces": 7}
    assert run_until_parked(execution).status == "finished"
    late = agency("mission", "signal", me, "stock", "--payload", "plain text")
    assert (late.code, "it takes no more signals" in late.err) == (1, True)


def test_a_wait_is_ended_now(agency: Agency, clerk: ConfiguredAgent, model: Model) -> None:
    me = str(run(clerk, model, WAIT).pk)[:8]
    assert agency("mission", "resume", me).out.strip() == f"{me} goes on now."
    assert agency("mission", "resume", me).code == 1


def test_a_limit_is_extended(agency: Agency, clerk: ConfiguredAgent, model: Model) -> None:
    me = str(run(clerk, model, go_on("Sort B."), most=1).pk)[:8]
    assert "agency mission extend" in agency("show", me).out
    assert agency("mission", "extend", me, "101").code == 2
    assert agency("mission", "extend", me, "2").out.strip() == f"{me} has 2 iterations more and goes on."
    refused = agency("mission", "extend", me, "2")
    assert (refused.code, "only one that has reached its limit" in refused.err) == (1, True)


def test_a_waiting_mission_is_cancelled(agency: Agency, clerk: ConfiguredAgent, model: Model) -> None:
    execution = run(clerk, model, WAIT)
    assert "cancelled" in agency("mission", "cancel", str(execution.pk)).out
    execution.refresh_from_db()
    assert execution.loop_status == "cancelled"


def test_what_a_blocked_mission_asks_is_shown_with_the_answer_to_type(
    agency: Agency, clerk: ConfiguredAgent, model: Model
) -> None:
    asked = {"question": "Which shop?", "kind": "choice", "choices": ["Bonn", "Ulm"]}
    execution = run(clerk, model, decision("blocked", required_input=asked), most=1)
    request = str(execution.human_requests.get().pk)[:8]
    assert "Which shop?" in agency("inbox").out
    shown = agency("inbox", "show", request).out
    assert f"agency inbox answer {request} answer --answer 'Bonn|Ulm' --grant N" in shown
    assert "grant" in agency("inbox", "answer", request, "answer", "--answer", "Ulm").err
    called = agency("inbox", "answer", request, "answer", "--answer", "Ulm", "--grant", "1")
    assert called.code == 0, called.err
    assert "answer by agency: Ulm" in agency("inbox", "show", request).out


def test_what_a_model_has_named_stays_one_argument_of_the_command_to_type(
    agency: Agency, clerk: ConfiguredAgent, model: Model
) -> None:
    asked = {"question": "Go?", "kind": "choice", "choices": ["don't; reboot", "go\x1b[2J"]}
    execution = run(clerk, model, decision("blocked", required_input=asked))
    shown = agency("inbox", "show", str(execution.human_requests.get().pk)[:8]).out
    (typed,) = [line for line in shown.splitlines() if "--answer" in line]
    assert shlex.split(typed)[-1] == "don't; reboot|go\ufffd[2J"
    execution = run(clerk, model, decision("wait", wait={"signal": "paid; reboot", "what_for": "x\x1b[2J"}))
    shown = agency("show", str(execution.pk)).out
    assert "'paid; reboot' sends it" in shown
    assert "\x1b" not in shown


def test_a_spent_budget_is_shown_and_raised(agency: Agency, clerk: ConfiguredAgent) -> None:
    ask = Budget({"tokens": 5_000}, Usage()).ask(Usage(model_calls=1, input_tokens=5_200))
    assert ask is not None
    kept = {"loop_config": {"limits": {"tokens": 5_000}}}
    execution = waiting_row(clerk, ask, execution_key=None, mission=mission(clerk), metadata=kept)
    request = str(execution.human_requests.get().pk)[:8]
    assert "has spent 5,200 of its 5,000 tokens" in agency("inbox").out
    shown = agency("inbox", "show", request).out
    assert f"""agency inbox answer {request} answer --answer '{{"tokens": N}}'""" in shown
    assert "undecided: answer, give_up" in shown
    too_low = agency("inbox", "answer", request, "answer", "--answer", '{"tokens": 5200}')
    assert (too_low.code, "answer.tokens" in too_low.err) == (2, True)
    assert agency("inbox", "answer", request, "answer", "--answer", '{"tokens": 9000}').code == 0
    execution.refresh_from_db()
    assert execution.metadata["loop_config"]["limits"] == {"tokens": 9000}


def test_schedules_are_added_listed_paused_and_removed(agency: Agency, clerk: ConfiguredAgent) -> None:
    mission(clerk)
    add = ("mission", "schedule", "add", "Orders", "30 8 * * mon-fri", "--zone", "Europe/Berlin")
    added = agency(*add).out.splitlines()
    assert len(added) == 6
    assert all(" 08:30 CE" in line for line in added[1:])
    (row,) = json.loads(agency("mission", "schedule", "list", "--json").out)
    assert len(row["next_times"]) == 5
    assert "✓ runs" in agency("mission", "schedule", "list", "Orders").out
    assert "is paused." in agency("mission", "schedule", "pause", row["id"][:8]).out
    paused = agency("mission", "schedule", "list").out
    assert "‖ paused" in paused
    assert paused.rstrip().endswith("–")  # no times at which nothing will happen
    assert "runs, next on" in agency("mission", "schedule", "resume", row["id"]).out
    assert "Removed 30 8 * * mon-fri" in agency("mission", "schedule", "remove", row["id"]).out
    assert "No schedules yet" in agency("mission", "schedule", "list").out


def test_schedules_fit_a_terminal_and_are_a_line_each_in_a_pipe(
    agency: Agency, clerk: ConfiguredAgent
) -> None:
    row = mission(clerk)
    zone = "Europe/Berlin"
    schedule = schedules.create_schedule(row, cron="30 8 * * mon-fri", time_zone=zone)
    times = [f"{time.astimezone(ZoneInfo(zone)):%a %d %b %H:%M}" for time in schedules.upcoming(schedule)]
    assert ", ".join(times) in agency("mission", "schedule", "list").out.splitlines()[1]
    out = StringIO()
    Console(file=out, width=70).print(table([schedule], is_narrow=True))
    assert [line.rstrip()[-16:] for line in out.getvalue().splitlines()[1:]] == times


def test_the_loop_prompt_may_be_given_by_its_name_and_holds_any_braces(
    agency: Agency, clerk: ConfiguredAgent
) -> None:
    braces = "{iteration!r:>10} {0.__class__} {} }{ {{iteration}} {unknown[0]} %s ${x}"
    create = ("mission", "create", "Orders", "--prompt", "Sort.", "--agent", "Anna")
    assert agency(*create, "--loop-prompt", braces).code == 0
    assert Mission.objects.get().loop_prompt == braces


def test_checks_need_a_loop_and_can_be_dropped(agency: Agency, clerk: ConfiguredAgent) -> None:
    create = ("mission", "create", "Orders", "--prompt", "Sort.", "--agent", "Anna", "--check", "counted")
    with completion.isolated():
        completion.register(Counted)
        refused = agency(*create)
        assert (refused.code, "completion_checks: " in refused.err) == (2, True)
        assert " ".join(refused.err.split()).endswith("add a loop_prompt, or drop them")
        assert not Mission.objects.exists()
        assert agency(*create, "--loop", "Go on.").code == 0
        assert agency("mission", "change", "Orders", "--loop", "").code == 2
        assert agency("mission", "change", "Orders", "--loop", "", "--check", "").code == 0
    row = Mission.objects.get()
    assert (row.loop_prompt, row.completion_checks) == (None, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("0 0 31 2 *",), "cron: "),
        (("often",), "write five fields"),
        (("* * * * *", "--zone", "Mars/Base"), "time_zone: "),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(
    agency: Agency, clerk: ConfiguredAgent, arguments: tuple[str, ...], said: str
) -> None:
    row = mission(clerk)
    called = agency("mission", "schedule", "add", "Orders", *arguments)
    assert (called.code, said in called.err) == (2, True)
    assert not row.schedules.exists()
