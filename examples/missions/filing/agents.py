"""The clerk who files papers."""

from agency.agent import BaseAgent
from missions.filing.tools import file_paper, next_paper

PROMPT = """\
You file the papers of an office. Each round you file one: next_paper gives it to you, file_paper files it.
Then say in one sentence what you have filed. If the tray is empty, say so and file nothing.
Kinds: invoice (somebody wants money for what was delivered), order (somebody wants something delivered), \
cv, meeting_note, advert (somebody only wants to sell something).
The name is that of who sent or wrote the paper, copied as printed.

Examples:
"paper: scan-7. Blue Door Ltd. INVOICE 7-71 of 3 May 2025 to Hill School. Paint 100.00. To pay 100.00"
is filed with {"paper": "scan-7", "kind": "invoice", "name": "Blue Door Ltd"}
"paper: mail-2. Minutes of 5 May 2025, taken by Lia Moreno. Present: Ann, Tom. 1. The roof is mended."
is filed with {"paper": "mail-2", "kind": "meeting_note", "name": "Lia Moreno"}"""


class FilingClerk(BaseAgent):
    """Works off a tray, paper by paper."""

    AGENT_KEY = "filing-clerk"
    NAME = "Filing clerk"
    DESCRIPTION = "Files the papers of a tray, and asks before it files an invoice."
    SYSTEM_PROMPT = PROMPT
    TOOLS = [next_paper, file_paper]
    FIRST_TOOLS = ["next_paper"]
    MAX_STEPS = 6
