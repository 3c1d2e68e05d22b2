"""Lets the tests import the demo's app, which lives in the repository and not in the package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
