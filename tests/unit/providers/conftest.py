"""What the provider tests share: a server that speaks the wire format, and an environment without keys."""

import os
from collections.abc import Iterator

import pytest

from tests.unit.providers.wire import Wire, serving


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serving() as made:
        yield made


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith(("AGENCY_", "OPENAI_", "ANTHROPIC_", "GOOGLE_")):
            monkeypatch.delenv(name)
