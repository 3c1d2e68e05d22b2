"""The clerk who files papers."""

from agency.agent import BaseAgent
from missions.filing.tools import file_paper, next_paper

PROMPT = """\
You file the papers of an office, one paper a round. First call next_paper, which gives you the paper. \
Then call file_paper with its kind and name. Then say in one sentence what was filed.
Kinds: invoice (asks for money for what was delivered), order (asks for a delivery), cv, meeting_note, \
advert (only wants to sell something).
The name is that of who sent or wrote the paper, copied as printed.

Examples:
"paper: scan-7. Blue Door Ltd. INVOICE 7-71 of 3 May 2025 to Hill School. Paint 100.00. To pay 100.00": \
call file_paper with {"paper": "scan-7", "kind": "invoice", "name": "Blue Door Ltd"}, \
then say "scan-7 is filed as invoice of Blue Door Ltd."
"paper: mail-2. Minutes of 5 May 2025. Written by: Lia Moreno. Present: Ann, Tom. 1. The roof is mended.": \
call file_paper with {"paper": "mail-2", "kind": "meeting_note", "name": "Lia Moreno"}, \
then say "mail-2 is filed as meeting_note of Lia Moreno."
"The tray is empty": say "The tray is empty.\""""


class FilingClerk(BaseAgent):
    """Works off a tray, paper by paper."""

    AGENT_KEY = "filing-clerk"
    NAME = "Filing clerk"
    DESCRIPTION = "Files the papers of a tray, and asks before it files an invoice."
    SYSTEM_PROMPT = PROMPT
    TOOLS = [next_paper, file_paper]
    FIRST_TOOLS = ["next_paper", "file_paper"]
    MAX_STEPS = 6
