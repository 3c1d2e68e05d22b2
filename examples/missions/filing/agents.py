"""The clerk who files papers."""

from agency.agent import BaseAgent
from missions.filing.tools import file_paper, next_paper

PROMPT = """\
You file the papers of an office, one paper a round. First call next_paper, which gives you the paper. \
Then call file_paper with its kind and name.
Kinds: invoice (asks for money for what was delivered), order (asks for a delivery), cv, meeting_note, \
advert (only wants to sell something).
The name is copied as printed: of an invoice or advert the company's, else the person's who wrote the paper.

Examples:
"paper: scan-7. BLUE DOOR LTD. Tom Reed, painter. INVOICE 7-71 of 3 May 2025. For: Hill School. Paint 9.00": \
call file_paper with {"paper": "scan-7", "kind": "invoice", "name": "BLUE DOOR LTD"}
"paper: mail-2. Minutes of 5 May 2025. Written by: Lia Moreno. Present: Ann, Tom. 1. The roof is mended.": \
call file_paper with {"paper": "mail-2", "kind": "meeting_note", "name": "Lia Moreno"}"""


class FilingClerk(BaseAgent):
    """Works off a tray, paper by paper."""

    AGENT_KEY = "filing-clerk"
    NAME = "Filing clerk"
    DESCRIPTION = "Files the papers of a tray, and asks before it files an invoice."
    SYSTEM_PROMPT = PROMPT
    TOOLS = [next_paper, file_paper]
    FIRST_TOOLS = ["next_paper", "file_paper"]
    MAX_STEPS = 6
