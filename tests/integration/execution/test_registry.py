"""Discovery in installed apps and entry points, and the system checks that name what is faulty."""

import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import ERROR, WARNING, run_checks

from agency.agent import BaseAgent
from agency.errors import ConfigurationError, InvalidInput, UnknownDefinition
from agency.execution import BaseAgenticExecutionDefinition, JudgeValidator, checks, registry
from tests.project.agents import Clerk, Librarian
from tests.project.executions import CountWords, ShelveBooks, Summarise

AGENT = """
    from agency.agent import BaseAgent
    class Gardener(BaseAgent):
        AGENT_KEY = "gardener"
        NAME = "Gardener"
"""
DEFINITION = """
    from agency.execution import BaseAgenticExecutionDefinition
    class Water(BaseAgenticExecutionDefinition):
        EXECUTION_KEY = "water"
        AGENT_KEY = "gardener"
        NAME = "Water"
        def execute(self, input_data, conversation):
            return conversation.ask("Water.")
"""
_numbers = itertools.count()
MakeApp = Callable[..., str]


@pytest.fixture(autouse=True)
def untouched_registry() -> Iterator[None]:
    with registry.isolated():
        yield


@pytest.fixture
def make_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> MakeApp:
    """Write an installed app with these modules and discover anew; returns its name."""

    def make(**modules: str) -> str:
        name = f"garden{next(_numbers)}"
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(textwrap.dedent(text))
        monkeypatch.syspath_prepend(tmp_path)
        settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, name]
        registry.autodiscover()
        return name

    return make


def problem() -> registry.Problem:
    (only,) = registry.problems()
    return only


def test_agents_and_definitions_of_installed_apps_are_found():
    registry.autodiscover()
    assert registry.agent_classes() == {"clerk": Clerk, "librarian": Librarian}
    assert registry.get_definition("count-words") is CountWords
    assert registry.get_agent_class("clerk") is Clerk
    assert registry.all_definitions() == [CountWords, ShelveBooks, Summarise]
    assert registry.definitions_for("clerk") == [CountWords, Summarise]
    assert registry.problems() == []


def test_discovering_twice_changes_nothing(make_app: MakeApp):
    make_app(agents=AGENT, executions=DEFINITION)
    before = registry.all_definitions()
    registry.autodiscover()
    assert registry.all_definitions() == before
    assert registry.problems() == []


def test_an_app_may_bring_agents_or_executions_or_neither(make_app: MakeApp):
    make_app(agents=AGENT)
    make_app(executions=DEFINITION)
    make_app()
    assert registry.get_definition("water").AGENT_KEY == "gardener"
    assert registry.problems() == []


def test_classes_that_a_module_imports_from_its_own_app_count(make_app: MakeApp):
    make_app(agents="from .plants import *", plants=AGENT)
    assert "gardener" in registry.agent_classes()


def test_classes_that_a_module_imports_from_elsewhere_are_not_its_own(make_app: MakeApp):
    make_app(executions="from tests.unit.execution.definitions import Report")
    assert registry.problems() == []
    with pytest.raises(UnknownDefinition):
        registry.get_definition("report")


def test_bases_for_others_are_no_definitions(make_app: MakeApp):
    make_app(
        agents=AGENT,
        executions=DEFINITION
        + """
    class Garden(BaseAgenticExecutionDefinition):
        AGENT_KEY = "gardener"
    class _Wet(Garden):
        def execute(self, input_data, conversation):
            return ""
""",
    )
    assert registry.problems() == []
    assert [cls.__name__ for cls in registry.definitions_for("gardener")] == ["Water"]


def test_an_unknown_key_says_which_are_known():
    with pytest.raises(UnknownDefinition, match="count-words, shelve-books, summarise") as unknown:
        registry.get_definition("nothing")
    assert isinstance(unknown.value, InvalidInput)
    assert unknown.value.errors[0]["path"] == "execution_key"
    with pytest.raises(ConfigurationError, match="clerk, librarian"):
        registry.get_agent_class("nothing")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_module", "ModuleNotFoundError"),
        ("from tests.project.agents import Nobody", "ImportError"),
        ("def broken(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_a_check_that_names_it(make_app: MakeApp, text: str, error: str):
    name = make_app(agents=AGENT, executions=text)
    found = problem()
    assert found.id == registry.IMPORT_FAILED
    assert f"{name}.executions" in found.message
    assert f"{name}/executions.py:1" in found.message
    assert error in found.message
    assert "gardener" in registry.agent_classes()
    assert registry.get_definition("count-words") is CountWords


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('EXECUTION_KEY = "water"', "", "EXECUTION_KEY is missing"),
        ('EXECUTION_KEY = "water"', 'EXECUTION_KEY = "wa ter"', "EXECUTION_KEY is 'wa ter'"),
        ('NAME = "Water"', 'NAME = "Water"\n        MAX_RETRIES = -1', "MAX_RETRIES is -1"),
        ("def execute", "def perform", "execute() is missing"),
    ],
)
def test_a_faulty_definition_is_named_with_class_and_file_and_the_others_still_work(
    make_app: MakeApp, old: str, new: str, said: str
):
    sound = DEFINITION.replace("Water", "Weed").replace('"water"', '"weed"')
    name = make_app(agents=AGENT, executions=sound + DEFINITION.replace(old, new))
    found = problem()
    assert found.id == registry.FAULTY_CLASS
    assert f"{name}.executions.Water" in found.message
    assert f"{name}/executions.py" in found.message
    assert said in found.message
    assert found.hint
    assert registry.definitions_for("gardener") == [registry.get_definition("weed")]


def test_a_faulty_agent_takes_its_definitions_with_it_but_no_others(make_app: MakeApp):
    make_app(agents=AGENT + "        MAX_STEPS = 0", executions=DEFINITION)
    assert [found.id for found in registry.problems()] == [registry.FAULTY_CLASS, registry.UNKNOWN_AGENT]
    assert "water" not in {cls.EXECUTION_KEY for cls in registry.all_definitions()}
    assert registry.definitions_for("clerk") == [CountWords, Summarise]


def test_an_agent_key_that_nobody_has_names_those_there_are(make_app: MakeApp):
    make_app(executions=DEFINITION)
    found = problem()
    assert found.id == registry.UNKNOWN_AGENT
    assert "'gardener'" in found.message
    assert "clerk, librarian" in found.hint


def test_a_key_that_is_taken_is_an_error_that_names_both_and_the_first_keeps_it(make_app: MakeApp):
    first = make_app(agents=AGENT, executions=DEFINITION)
    second = make_app(executions=DEFINITION.replace('NAME = "Water"', 'NAME = "Water more"'))
    found = problem()
    assert found.id == registry.TAKEN_KEY
    assert f"{first}.executions.Water" in found.message
    assert f"{second}.executions.Water" in found.message
    assert registry.get_definition("water").__module__ == f"{first}.executions"


@pytest.mark.parametrize(
    "again",
    [
        {"agents": AGENT.replace('"gardener"', '"other"')},
        {"executions": DEFINITION.replace('"water"', '"other"')},
    ],
    ids=["agent", "definition"],
)
def test_a_name_that_is_taken_is_an_error(make_app: MakeApp, again: dict[str, str]):
    make_app(agents=AGENT, executions=DEFINITION)
    make_app(**again)
    found = problem()
    assert found.id == registry.TAKEN_NAME
    assert "is taken by" in found.message


def test_a_judge_with_the_workers_model_is_warned_of_but_works():
    class Judged(CountWords):
        EXECUTION_KEY = "judged"
        NAME = "Judged"
        VALIDATORS = [JudgeValidator("scripted:tests", "Is it good?")]

    registry.register(Judged)
    assert registry.get_definition("judged") is Judged
    assert "own model" in problem().message
    (message,) = checks.check_declarations()
    assert message.level == WARNING


def test_the_checks_report_every_problem_with_its_fix(make_app: MakeApp):
    make_app(executions=DEFINITION + "    class Odd(Water):\n        NAME = ''\n")
    messages = {message.id: message for message in checks.check_declarations()}
    assert set(messages) == {registry.FAULTY_CLASS, registry.UNKNOWN_AGENT}
    assert all(message.level == ERROR and message.hint for message in messages.values())


def test_the_checks_are_part_of_djangos(make_app: MakeApp):
    make_app(executions="import no_such_module")
    assert [message.id for message in run_checks(tags=["agency"])] == [registry.IMPORT_FAILED]


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a distribution with these entry points, and a module `plots`, on the path."""

    def install(entry_points: str) -> None:
        (tmp_path / "plots.py").write_text(textwrap.dedent(AGENT) + textwrap.dedent(DEFINITION))
        info = tmp_path / "plots-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plots\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "plots", raising=False)
        registry.autodiscover()

    return install


@pytest.mark.parametrize("target", ["plots", "plots:{}"])
def test_entry_points_bring_modules_or_classes(distribution: Callable[[str], None], target: str):
    distribution(
        f"""
        [agency.agents]
        garden = {target.format("Gardener")}
        [agency.executions]
        garden = {target.format("Water")}
        """
    )
    assert registry.problems() == []
    assert registry.get_definition("water").__module__ == "plots"


@pytest.mark.parametrize("target", ["no_such_module", "plots:textless", "plots:__name__"])
def test_a_faulty_entry_point_is_named_and_the_others_still_work(
    distribution: Callable[[str], None], target: str
):
    distribution(f"[agency.executions]\nbad = {target}\n[agency.agents]\ngood = plots\n")
    found = problem()
    assert found.id == registry.IMPORT_FAILED
    assert f"bad = {target}" in found.message
    assert "gardener" in registry.agent_classes()


class Baker(BaseAgent):
    AGENT_KEY = "baker"
    NAME = "Baker"


class Bake(BaseAgenticExecutionDefinition):
    EXECUTION_KEY = "bake"
    AGENT_KEY = "baker"
    NAME = "Bake"

    def execute(self, input_data: Any, conversation: Any) -> str:
        return conversation.ask("Bake.")


def test_classes_can_be_registered_by_hand_in_any_order_and_are_forgotten_after_the_block():
    with registry.isolated(empty=True):
        registry.register(Bake, Baker)
        assert registry.all_definitions() == [Bake]
    assert "baker" not in registry.agent_classes()


def test_registering_a_faulty_class_by_hand_raises_with_the_fix():
    class Half(Bake):
        NAME = ""

    with (
        registry.isolated(empty=True),
        pytest.raises(ConfigurationError, match=r"NAME is missing.*Set NAME to"),
    ):
        registry.register(Baker, Half)


def test_only_a_registered_class_can_be_ordered():
    registry.register(Baker, Bake)
    assert registry.resolve(Bake) is Bake
    assert registry.resolve("bake") is Bake
    with pytest.raises(ConfigurationError, match="not registered"):
        registry.resolve(type("Bake", (Bake,), {}))
