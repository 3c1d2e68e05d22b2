"""The standing order, and the check that decides whether it is carried out: the cabinet, not the model."""

from agency.mission.completion import BaseCompletionCheck, ClaimedCompletion
from missions.filing import tray


class AllPapersFiled(BaseCompletionCheck):
    """Whether every paper of the tray has its record."""

    NAME = "all-papers-filed"
    DESCRIPTION = "Every paper of the tray has a record in the cabinet."

    def check(self, claimed: ClaimedCompletion) -> str | None:
        left = tray.unfiled()
        return f"Call next_paper and file the paper; these are left: {', '.join(left)}." if left else None


ORDER = {
    "name": "File the tray",
    "prompt": "File every paper of the tray.",
    "loop_prompt": "One paper is filed in each round, until a tool says that the tray is empty.",
    "completion_checks": [AllPapersFiled.NAME],
}
