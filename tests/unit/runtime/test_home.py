"""The state directory: private, found by the environment, with a secret that is made once."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agency.errors import ConfigurationError
from agency.runtime.home import LONGEST_SOCKET_PATH, SOCKET_NAME, Home


def test_the_home_is_dot_agency_unless_the_environment_says_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Home.of({}).path == tmp_path / ".agency"
    assert Home.of({"AGENCY_HOME": str(tmp_path / "x")}).path == tmp_path / "x"


def test_a_prepared_home_is_readable_by_its_owner_alone(tmp_path):
    home = Home(tmp_path / "new" / "home")
    home.prepare()
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.run.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_written_says_so_and_names_the_fix(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(ConfigurationError, match="Set AGENCY_HOME to a directory"):
        Home(tmp_path / "file" / "home").prepare()


def test_processes_that_start_at_once_agree_on_one_secret(tmp_path):
    home = Home(tmp_path / "home")
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: home.secret_key(), range(32)))
    assert len(secrets) == 1
    assert len(secrets.pop()) >= 50
    kept = home.path / "secret-key"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert sorted(path.name for path in home.path.iterdir()) == ["run", "secret-key"]


def test_the_socket_lives_in_the_home_when_its_path_is_short_enough():
    home = Home(Path("/tmp/short"))
    assert home.socket_directory({}) == home.run


def test_a_long_home_gets_a_short_private_socket_directory(tmp_path):
    home = Home(tmp_path / ("deep-" * 30))
    directory = home.socket_directory({"XDG_RUNTIME_DIR": "/tmp"})
    try:
        assert len(str(directory / SOCKET_NAME)) < LONGEST_SOCKET_PATH
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert home.socket_directory({"XDG_RUNTIME_DIR": "/tmp"}) == directory
    finally:
        directory.rmdir()


def test_a_socket_directory_that_others_could_enter_is_refused(tmp_path):
    home = Home(tmp_path / ("deep-" * 30))
    runtime = {"XDG_RUNTIME_DIR": "/tmp"}
    directory = home.socket_directory(runtime)
    try:
        directory.chmod(0o755)
        with pytest.raises(ConfigurationError, match="not private to you"):
            home.socket_directory(runtime)
    finally:
        directory.rmdir()
