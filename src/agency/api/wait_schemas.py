"""The shape of what a mission waits for."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel

from agency.execution.metadata import WAIT


class WaitOut(BaseModel):
    """What a mission waits for: a time (`seconds`, `until`), or the signal or watch of this `name`.

    `until` is when the wait ends by itself; `failures` counts failed looks of a watch in a row.
    """

    kind: Literal["seconds", "until", "signal", "watch"]
    name: str | None
    what_for: str
    since: datetime
    until: datetime
    failures: int

    @classmethod
    def of(cls, execution: Any) -> "WaitOut | None":
        """The wait of an execution, if it waits."""
        kept = execution.metadata.get(WAIT)
        return None if kept is None or execution.is_terminal else cls.model_validate(kept)
