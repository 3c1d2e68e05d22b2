"""The office's vendor directory: which company has which id."""

import csv
from functools import cache
from pathlib import Path

from records.reading import plain

DIRECTORY = Path(__file__).with_name("vendors.csv")


def vendor_id(name: str) -> str | None:
    """The id of the vendor with this name, in any case and spacing; `None` if there is no such vendor."""
    return _ids().get(plain(name))


@cache
def _ids() -> dict[str, str]:
    with DIRECTORY.open(encoding="utf-8", newline="") as file:
        return {plain(row["name"]): row["id"] for row in csv.DictReader(file)}
