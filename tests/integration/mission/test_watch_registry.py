"""Watches are found in the `missions` modules of installed apps; a faulty one is named and harms no other."""

import itertools
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import ERROR, run_checks

from agency.errors import ConfigurationError, NotDeployed
from agency.mission.watches import BaseWatch, FileTail, Look, registry

BUILD = """
    from agency.mission.watches import BaseWatch, FileTail, Look
    class Build(FileTail):
        NAME = "build"
        DESCRIPTION = "The build has ended."
        PATH = "/nowhere/build.log"
        PATTERN = "done"
"""
_numbers = itertools.count()
MakeApp = Callable[..., str]


@pytest.fixture(autouse=True)
def untouched_registry() -> Iterator[None]:
    with registry.isolated():
        yield


@pytest.fixture
def make_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> MakeApp:
    """Write an installed app with this `missions` module and discover anew; returns its name."""

    def make(missions: str) -> str:
        name = f"yard{next(_numbers)}"
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "missions.py").write_text(textwrap.dedent(missions))
        monkeypatch.syspath_prepend(tmp_path)
        settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, name]
        registry.autodiscover()
        return name

    return make


def test_watches_of_installed_apps_are_found_and_described(make_app: MakeApp) -> None:
    make_app(BUILD)
    assert "build" in registry.names()
    assert issubclass(registry.get_watch("build"), FileTail)
    assert "- build: The build has ended." in registry.described().splitlines()
    assert registry.problems() == []


def test_what_agency_brings_is_no_watch_by_itself(make_app: MakeApp) -> None:
    before = registry.names()
    make_app("from agency.mission.watches import EventWatch, FileTail, HttpCheck, SqlCheck")
    assert registry.names() == before
    assert registry.problems() == []


def test_a_base_without_a_name_is_only_a_base(make_app: MakeApp) -> None:
    make_app("""
        from agency.mission.watches import BaseWatch
        class Oven(BaseWatch):
            INTERVAL = 5
    """)
    assert registry.problems() == []


def test_a_faulty_one_is_reported_by_a_system_check_and_the_others_work(make_app: MakeApp) -> None:
    app = make_app(
        BUILD
        + """
    class Late(BaseWatch):
        NAME = "late"
        DESCRIPTION = "Never looks."
        INTERVAL = 0
"""
    )
    assert "build" in registry.names() and "late" not in registry.names()
    found = [one for one in run_checks(tags=["agency"]) if f"{app}.missions.Late" in str(one.obj)]
    assert {one.level for one in found} == {ERROR}
    assert [one.id for one in found] == ["agency.E002", "agency.E002"]
    told = " ".join(one.msg for one in found)
    assert "INTERVAL is 0" in told and "look() is missing" in told and "missions.py" in told


def test_a_module_that_cannot_be_imported_is_reported(make_app: MakeApp) -> None:
    app = make_app("1 / 0")
    (problem,) = registry.problems()
    assert (problem.id, problem.obj) == ("agency.E001", f"{app}.missions")
    assert "ZeroDivisionError" in problem.message


def test_a_name_that_is_taken_is_an_error_and_the_first_keeps_it(make_app: MakeApp) -> None:
    make_app(BUILD)
    first = registry.get_watch("build")
    make_app(BUILD)
    assert registry.get_watch("build") is not None
    (problem,) = registry.problems()
    assert problem.id == "agency.E004"
    assert "NAME 'build' is taken by" in problem.message
    assert first.__module__ in problem.message


def test_an_unknown_name_may_be_another_releases() -> None:
    with pytest.raises(NotDeployed, match="no watch is registered as 'oven'; known: "):
        registry.get_watch("oven")


def test_a_faulty_one_registered_by_hand_is_refused() -> None:
    class Oven(BaseWatch):
        NAME = "oven"
        DESCRIPTION = ""

        def look(self, view: Any, memory: Any) -> Look:
            return Look(True)

    with pytest.raises(ConfigurationError, match="DESCRIPTION is missing"):
        registry.register(Oven)
    Oven.DESCRIPTION = "The cake is done."
    registry.register(Oven)
    assert registry.get_watch("oven") is Oven
