"""The built wheel in a fresh project with its own Celery app and user model, set up as the page says."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.e2e.service import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "existing-project.md"
FILES = Path(__file__).parent / "existing"
BLOCK = re.compile(r"<!-- file: (\S+) -->\s*```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
OWN_SETTINGS = """
import os

INSTALLED_APPS += ["people", "stock"]
AUTH_USER_MODEL = "people.Person"
DATABASES["default"]["ATOMIC_REQUESTS"] = True
CELERY_BROKER_URL = os.environ.get("BROKER_URL")
CELERY_TASK_DEFAULT_QUEUE = "shop"
"""
OWN_URLS = """
from stock.views import describe

urlpatterns += [path("describe", describe)]
"""


class Project:
    """A directory with a project and an environment of its own, where `python` knows the wheel alone."""

    def __init__(self, directory: Path, broker_url: str) -> None:
        self.root = directory / "project"
        self.environment = directory / "venv"
        self.broker_url = broker_url
        self._log = directory / "log"

    @property
    def python(self) -> str:
        return str(self.environment / "bin" / "python")

    def environ(self, **more: str) -> dict[str, str]:
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AGENCY_", "DJANGO_", "PYTHONPATH"))
        }
        return {
            **clean,
            "DJANGO_SETTINGS_MODULE": "shop.settings",
            "AGENCY_MODEL": "scripted:stock.model:model",
            "AGENCY_HOME": str(self.root / ".agency"),
            "PYTHONPATH": str(self.root),
            **more,
        }

    def run(self, *command: str, **environ: str) -> str:
        done = subprocess.run(
            command, cwd=self.root, env=self.environ(**environ), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}\n{self.log()}"
        return done.stdout

    def manage(self, *arguments: str, **environ: str) -> str:
        return self.run(self.python, "manage.py", *arguments, **environ)

    def start(self, *command: str, **environ: str) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as out:
            return subprocess.Popen(
                command,
                cwd=self.root,
                env=self.environ(**environ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


@pytest.fixture(scope="module")
def project(broker_url: str) -> Iterator[Project]:
    with servers.directory("agency-shop-") as directory:
        made = Project(directory, broker_url)
        _install(made, _wheel(directory))
        _create(made)
        yield made


def _wheel(directory: Path) -> Path:
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(directory),
        str(ROOT),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = directory.glob("*.whl")
    return wheel


def _install(project: Project, wheel: Path) -> None:
    """The wheel first; only then this environment's packages become visible, without what is editable in it.

    A `.pth` file is read for its own directory alone, so the editable checkout does not come along.
    """
    venv.create(project.environment, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", project.python, "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    asked = [project.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    (packages / "parent.pth").write_text(sysconfig.get_path("purelib") + "\n")


def _create(project: Project) -> None:
    project.root.mkdir()
    project.run(project.python, "-m", "django", "startproject", "shop", ".", DJANGO_SETTINGS_MODULE="")
    for name in ("people", "stock", "stock/management", "stock/management/commands"):
        (project.root / name).mkdir()
        (project.root / name / "__init__.py").touch()
    for path, text in (("shop/settings.py", OWN_SETTINGS), *BLOCK.findall(PAGE.read_text(encoding="utf-8"))):
        with (project.root / path).open("a") as file:
            file.write(f"\n{text}")
    with (project.root / "shop" / "urls.py").open("a") as file:
        file.write(OWN_URLS)
    for source, target in (
        ("people_models.py", "people/models.py"),
        ("stock_views.py", "stock/views.py"),
        ("stock_model.py", "stock/model.py"),
        ("stock_drive.py", "stock/management/commands/drive.py"),
    ):
        (project.root / target).write_text((FILES / source).read_text(encoding="utf-8"))
    project.manage("makemigrations", "people")
    project.manage("migrate", "--verbosity", "0")


def finished(project: Project, role: str, **environ: str) -> None:
    """All that the project submitted ran in the process of this role, from the wheel."""
    said = json.loads(project.manage("drive", ROLE="nobody", **environ))
    assert said["rolled_back"]
    assert said["ended"] == [["finished", {"title": role}]] * 2, project.log()
    assert Path(said["file"]).is_relative_to(project.environment)


def test_the_checks_find_nothing_to_complain_of(project):
    assert "no issues" in project.manage("check", "--fail-level", "WARNING")
    assert (
        project.manage("makemigrations", "--check", "--dry-run", "agency")
        == "No changes detected in app 'agency'\n"
    )


def test_the_asgi_application_takes_requests_and_sockets(project):
    asked = "import shop.asgi; print(*shop.asgi.application.application_mapping)"
    assert project.run(project.python, "-c", asked).split() == ["http", "websocket"]


def test_the_doctor_finds_nothing_to_mend(project):
    agency = str(project.environment / "bin" / "agency")
    found = json.loads(project.run(agency, "doctor", "--json", BROKER_URL=project.broker_url))
    assert [finding for finding in found if not finding["ok"]] == []
    assert {"Project", "Database", "Migrations", "Broker"} <= {finding["name"] for finding in found}


def test_executions_run_in_the_projects_celery_worker(project):
    environ = {"BROKER_URL": project.broker_url}
    options = ("worker", "--pool", "threads", "--concurrency", "2", "--loglevel", "WARNING")
    worker = project.start(project.python, "-m", "celery", "-A", "shop", *options, ROLE="celery", **environ)
    try:
        finished(project, "celery", **environ)
    finally:
        worker.terminate()
        worker.wait(120)


def test_without_a_broker_they_run_in_a_polling_worker(project):
    worker = project.start(project.python, "manage.py", "agency_worker", ROLE="poller")
    try:
        finished(project, "poller")
    finally:
        worker.terminate()
        worker.wait(120)


def test_the_dispatcher_ends_when_it_is_asked_to(project):
    alive = project.root / "alive"
    environ = {"AGENCY_ALIVE_FILE": str(alive)}
    dispatcher = project.start(project.python, "manage.py", "agency_dispatcher", **environ)
    eventually(lambda: alive.exists() or dispatcher.poll() is not None, log=project.log)
    assert dispatcher.poll() is None, project.log()
    dispatcher.terminate()
    assert dispatcher.wait(120) == 0
