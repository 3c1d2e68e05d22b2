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


@pytest.mark.parametrize(
    ("key", "value", "fix"),
    [
        ("LEASE_SECONDS", "60", "Set it to a number of seconds above 0."),
        ("BEAT_SECONDS", 0, "Set it to a number of seconds above 0."),
        ("POLL_SECONDS", float("nan"), "Set it to a number of seconds above 0."),
        ("DRAIN_SECONDS", -1, "Set it to a number of seconds, 0 or more."),
        ("DEADLINE_SECONDS", "soon", "Set it to a number of seconds above 0, or None."),
        ("CLAIM_CAP", 0, "Set it to a whole number from 1."),
        ("CLAIM_CAP", 2.5, "Set it to a whole number from 1."),
        ("WORKER_SLOTS", True, "Set it to a whole number from 1."),
        ("MODEL_RETRIES", None, "Set it to a whole number, 0 or more."),
        ("ALONE_AFTER", 1, "Set it to a whole number from 2."),
        ("DEATH_HINT", "no", "Set it to True or False."),
        ("CELERY_APP", "app", "Set it to the dotted path of something that can be imported, or None."),
        (
            "CONCURRENCY_PER_PROVIDER",
            {"openai": 0},
            'a whole number from 1, a dict as {"openai": 20}, or None.',
        ),
        ("LEASE_SECONDS", 2, "Set it to at least three times BEAT_SECONDS (1)"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_what_to_set(
    settings: Any, key: str, value: Any, fix: str
) -> None:
    settings.AGENCY = {key: value}
    with pytest.raises(ConfigurationError) as raised:
        conf.current()
    assert str(raised.value).startswith(f"settings.AGENCY[{key!r}] is {value!r}. ")
    assert fix in str(raised.value)


def test_a_setting_that_is_no_dict_is_refused(settings: Any) -> None:
    settings.AGENCY = ["LEASE_SECONDS"]
    with pytest.raises(ConfigurationError, match="Set it to a dict"):
        conf.current()


def test_a_change_in_place_is_noticed(settings: Any) -> None:
    settings.AGENCY = {"CLAIM_CAP": 4}
    assert conf.current().CLAIM_CAP == 4
    settings.AGENCY["CLAIM_CAP"] = 3
    assert conf.current().CLAIM_CAP == 3
