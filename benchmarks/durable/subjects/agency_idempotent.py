"""Ours with an `idempotent` tool: three commits a step, since the call is announced before it is made."""

from benchmarks.durable.subjects import agency

INSTALLED = agency.INSTALLED


class Subject(agency.Subject):
    def __init__(self, url: str) -> None:
        super().__init__(url, "idempotent")
