"""The `AGENCY` setting says what is wrong with it."""

from typing import Any

import pytest
from django.core.checks import run_checks

from agency.errors import ConfigurationError
from agency.runtime import conf


def test_an_unknown_key_is_refused_and_the_known_ones_are_listed(settings: Any) -> None:
    settings.AGENCY = {"LEASE": 5}
    with pytest.raises(ConfigurationError, match=r"no key 'LEASE'\. Known keys: .*LEASE_SECONDS"):
        conf.current()


def test_a_system_check_reports_it(settings: Any) -> None:
    settings.AGENCY = {"LEASE": 5}
    assert [message.id for message in run_checks() if message.id == "agency.E010"] == ["agency.E010"]


def test_what_is_not_set_has_its_default(settings: Any) -> None:
    settings.AGENCY = {"LEASE_SECONDS": 5}
    assert (conf.current().LEASE_SECONDS, conf.current().CLAIM_CAP) == (5, 5)
    del settings.AGENCY
    assert conf.current().LEASE_SECONDS == 60
