"""The locked requirements: complete, hashed, the same everywhere, and free of any host."""

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)


def pins(lock: Path) -> dict[str, str]:
    return dict(PIN.findall(lock.read_text(encoding="utf-8")))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


def test_there_is_a_lock_for_the_demo_and_one_for_each_django_under_test() -> None:
    assert {lock.name for lock in LOCKS} == {"demo.txt", "dev.txt", "dev-django61.txt"}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_names_no_host_and_hashes_every_pin(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_dependency_of_the_package_is_locked(lock: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {normal(re.split(r"[^A-Za-z0-9._-]", text)[0]) for text in project["dependencies"]}
    assert wanted - set(pins(lock)) == set()


def test_the_demo_runs_on_the_versions_that_are_tested() -> None:
    shipped, tested = (pins(ROOT / "requirements" / name) for name in ("demo.txt", "dev.txt"))
    assert set(shipped.items()) <= set(tested.items())


def test_the_locks_differ_in_django() -> None:
    assert pins(ROOT / "requirements" / "dev.txt")["django"].startswith("5.2.")
    assert pins(ROOT / "requirements" / "dev-django61.txt")["django"].startswith("6.1.")


def test_a_base_install_stays_small() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [Requirement(text) for text in project["dependencies"]]
    asked: dict[str, set[str]] = {}
    while waiting:
        one = waiting.pop()
        name, extras = normal(one.name), {"", *one.extras}
        new = extras - asked.setdefault(name, set())
        asked[name] |= new
        inner = [Requirement(text) for text in requires(name) or []] if new else []
        waiting += [each for each in inner if applies(each, new)]
    assert "celery" in asked and "redis" in asked
    assert len(asked) <= 65, sorted(asked)
