"""A watch whose first look hangs."""

import time
from typing import Any

from agency.mission.watches import BaseWatch, Look, View
from tests.faults.app.agents import note


class Gong(BaseWatch):
    NAME = "fault-gong"
    DESCRIPTION = "The gong was struck."
    LOOK_SECONDS = 60

    def begin(self, view: View) -> dict[str, Any]:
        return {"struck": 0}

    def look(self, view: View, memory: dict[str, Any]) -> Look:
        if note("look") > 1:
            return Look(True, payload="gong")
        while True:
            time.sleep(0.02)
