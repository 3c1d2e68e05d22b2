"""Database URLs become settings with the options that durability needs."""

from pathlib import Path

import pytest

from agency.config.database import database
from agency.errors import ConfigurationError

DEFAULT = Path("/home/a/db.sqlite3")


def test_no_url_means_the_sqlite_file_of_the_home():
    settings = database("", DEFAULT, threads=8)
    assert settings["ENGINE"] == "django.db.backends.sqlite3"
    assert settings["NAME"] == "/home/a/db.sqlite3"
    assert settings["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite:///relative.db", "relative.db"),
        ("sqlite:////var/a%20b.db", "/var/a b.db"),
        ("sqlite://", "/home/a/db.sqlite3"),
    ],
)
def test_a_sqlite_url_names_a_relative_or_absolute_file(url, name):
    assert database(url, DEFAULT, threads=8)["NAME"] == name


def test_a_postgresql_server_that_vanishes_is_noticed_within_half_a_lease():
    options = database("postgresql://a@db/x?connect_timeout=3", Path("unused"), 8)["OPTIONS"]
    silent = options["keepalives_idle"] + options["keepalives_interval"] * options["keepalives_count"]
    assert max(silent, options["tcp_user_timeout"] / 1000) <= 30
    assert options["connect_timeout"] == "3"


def test_no_statement_lock_or_open_transaction_of_a_postgresql_session_lasts_for_long():
    options = database("postgresql://a@db/x", Path("unused"), 8)["OPTIONS"]["options"]
    for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
        assert f"-c {name}=" in options


def test_a_pooler_that_takes_no_options_is_sent_none():
    assert "options" not in database("postgresql://a@db/x?options=", Path("unused"), 8)["OPTIONS"]


def test_a_postgresql_url_gets_a_pool_larger_than_the_worker():
    settings = database("postgresql://me:p%40ss@db.example:6543/agency?sslmode=require", DEFAULT, threads=8)
    assert (settings["USER"], settings["PASSWORD"]) == ("me", "p@ss")
    assert (settings["HOST"], settings["PORT"], settings["NAME"]) == ("db.example", "6543", "agency")
    assert settings["OPTIONS"]["sslmode"] == "require"
    assert settings["OPTIONS"]["pool"]["max_size"] == 13


@pytest.mark.parametrize(
    "url",
    ["postgresql://postgres@%2Ftmp%2FAbc/postgres", "postgresql://postgres@/postgres?host=/tmp/Abc"],
)
def test_a_postgresql_socket_directory_keeps_its_capitals(url):
    assert database(url, DEFAULT, threads=1)["HOST"] == "/tmp/Abc"


def test_an_ipv6_host_loses_its_brackets():
    settings = database("postgresql://me@[::1]:5433/agency", DEFAULT, threads=1)
    assert (settings["HOST"], settings["PORT"]) == ("::1", "5433")


@pytest.mark.parametrize("url", ["mysql://root@localhost/agency", "agency.db", "postgresql://me@localhost/"])
def test_a_url_that_cannot_be_used_says_how_to_write_it(url):
    with pytest.raises(ConfigurationError, match=r"AGENCY_DATABASE_URL .*(postgresql://user)"):
        database(url, DEFAULT, threads=8)
