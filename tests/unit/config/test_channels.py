"""The channel layer is at the broker's address, in the words of its own client."""

from typing import Any

import pytest
from redis.asyncio import ConnectionPool

from agency.config.channels import channel_layers


def pool(broker: str) -> ConnectionPool:
    (host,) = channel_layers(broker)["default"]["CONFIG"]["hosts"]
    return ConnectionPool.from_url(**{"url": host.pop("address"), **host})


@pytest.mark.parametrize(
    ("broker", "expected"),
    [
        ("redis://cache:6380/2", {"host": "cache", "port": 6380, "db": 2}),
        ("redis://:s%40cret@cache", {"host": "cache", "password": "s@cret", "db": 0}),
        ("redis://one;redis://two", {"host": "one", "db": 0}),
        ("redis+socket:///run/agency/valkey.sock", {"path": "/run/agency/valkey.sock", "db": 0}),
        ("redis+socket:///run/valkey.sock?virtual_host=3", {"path": "/run/valkey.sock", "db": 3}),
        (
            "rediss://cache/1?ssl_cert_reqs=CERT_REQUIRED&ssl_ca_certs=/etc/ca.pem",
            {"host": "cache", "db": 1, "ssl_cert_reqs": "required", "ssl_ca_certs": "/etc/ca.pem"},
        ),
    ],
)
def test_the_layer_reaches_the_broker(broker: str, expected: dict[str, Any]) -> None:
    made = pool(broker)
    assert expected.items() <= made.connection_kwargs.items()
    made.make_connection()


@pytest.mark.parametrize("broker", [None, "", "amqp://rabbit//", "sqs://", "memory://"])
def test_there_is_no_layer_without_a_redis(broker: str | None) -> None:
    assert channel_layers(broker) == {}


def test_two_databases_of_one_server_do_not_hear_each_other() -> None:
    prefixes = {
        channel_layers(f"redis://cache/{number}")["default"]["CONFIG"]["prefix"] for number in ("", 0, 1)
    }
    assert prefixes == {"agency-0", "agency-1"}
