"""The child process of a local model: what is said when it cannot start, and that stopping is safe."""

import subprocess
import sys
from pathlib import Path

import pytest

from agency.agent.providers.local import LocalServer, shared_server
from agency.errors import ConfigurationError


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)
    return path


def test_a_file_that_does_not_load_is_named_with_the_fix(broken: Path) -> None:
    server = LocalServer(broken)
    with pytest.raises(
        ConfigurationError, match=r"broken\.gguf could not be loaded .*AGENCY_MODEL"
    ) as caught:
        server.start()
    assert "AGENCY_MODEL=local:small" in str(caught.value)
    assert "it said nothing" not in str(caught.value)
    assert server.pid is None
    assert not server.alive()
    assert not server.health()


def test_a_server_that_never_ran_can_be_stopped_twice(broken: Path) -> None:
    server = LocalServer(broken)
    server.stop()
    server.stop()
    assert not server.alive()


def test_a_process_has_one_server_a_model(broken: Path) -> None:
    assert shared_server(str(broken)) is shared_server(str(broken))


def test_the_child_says_what_it_needs() -> None:
    command = [sys.executable, "-m", "agency.agent.providers.local_server"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "file" in done.stderr


def test_a_machine_without_the_runtime_is_told_what_to_install(broken: Path) -> None:
    code = (
        "import sys; sys.modules['xllamacpp'] = None\n"
        "from pathlib import Path; from agency.agent.providers.local import LocalServer\n"
        f"LocalServer(Path({str(broken)!r})).start()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'agency-django[local]'" in done.stderr
