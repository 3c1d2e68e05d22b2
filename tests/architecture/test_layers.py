"""The layer contracts of `pyproject.toml`, checked with the tests as well as by `make lint`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_module_imports_from_a_layer_above_it() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
