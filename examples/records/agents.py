"""The clerk: an agent that reads one paper at a time and files a record of it."""

from agency.agent import BaseAgent, ToolConfig
from records.tools import CheckTotalTool, LookUpVendorTool

# Examples teach a small model more than rules; all documents share them, so a cache pays for them once.
PROMPT = """\
You file the papers that an office receives: one document in, one record out.
Only an invoice needs the tools: look_up_vendor with the company that sent it, then check_total.
Values are copied from the document; what does not apply is null.

Examples:
"Blue Door Ltd. INVOICE 7-71 of 3 May 2025 to Hill School. Paint 100.00. VAT 20.00. To pay 120.00"
is an invoice: call look_up_vendor with "Blue Door Ltd", \
then check_total with ["100.00", "20.00"] and "120.00", then
{"kind": "invoice", "name": "Blue Door Ltd", "vendor_id": "V-900", "date": "2025-05-03", \
"reference": "7-71", "total": 120.00, "sum_ok": true}
"From: Ann Lee. To: sales. 4 May 2025. Order 5150. Lee Bakery orders 20 bags of flour for 90.00 EUR"
is an order: no tools,
{"kind": "order", "name": "Lee Bakery", "vendor_id": null, "date": "2025-05-04", "reference": "5150", \
"total": 90.00, "sum_ok": null}
"INVOICE trouble? FastBill Pro now only 9.00 EUR until 1 June 2025! Your FastBill Inc"
only wants to sell something, so it is an advert: no tools,
{"kind": "advert", "name": "FastBill Inc", "vendor_id": null, "date": null, "reference": null, \
"total": null, "sum_ok": null}
"Curriculum vitae. Lia Moreno, born 1 July 1990. Cook since 2015. Porto, 6 May 2025"
is a cv: no tools,
{"kind": "cv", "name": "Lia Moreno", "vendor_id": null, "date": "2025-05-06", "reference": null, \
"total": null, "sum_ok": null}"""


class RecordsClerk(BaseAgent):
    """Short orders in the words of the record, since the default model is a small one."""

    AGENT_KEY = "records-clerk"
    NAME = "Records clerk"
    DESCRIPTION = "Turns the papers that an office receives into records."
    SYSTEM_PROMPT = PROMPT
    TOOLS = [ToolConfig(LookUpVendorTool), ToolConfig(CheckTotalTool)]
    MAX_STEPS = 5
