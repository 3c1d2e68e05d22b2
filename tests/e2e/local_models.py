"""A local model's server for the tests of a module."""

import os
from collections.abc import Iterator

from agency.agent.providers.local import shared_server


def one_server(name: str) -> Iterator[str]:
    """The name of a model of this process, whose server is stopped afterwards whatever happened."""
    announced = {key: os.environ.pop(key) for key in list(os.environ) if key.startswith("AGENCY_LOCAL_")}
    server = shared_server(name)
    server.start()
    try:
        yield f"local:{name}"
    finally:
        server.stop()
        os.environ.update(announced)
