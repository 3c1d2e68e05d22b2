"""The job of the demo: one document becomes one checked record."""

from agency.execution import (
    BaseAgenticExecutionDefinition,
    Conversation,
    IsValidJsonValidator,
    MatchesSchemaValidator,
)
from records.agents import RecordsClerk
from records.record import DocumentInput, Record
from records.tools import SUM_OK
from records.validators import GroundedValidator

TASK = '''\
Document:
"""
{text}
"""

Only if it is an invoice, call the tools first. Then give its record.'''


class ExtractRecords(BaseAgenticExecutionDefinition):
    """Reads a paper, uses the tools where it is an invoice, and answers with a `Record`."""

    EXECUTION_KEY = "extract-records"
    AGENT_KEY = RecordsClerk.AGENT_KEY
    NAME = "Extract records"
    DESCRIPTION = "Turns one office document into a flat record: kind, name, vendor, date, reference, total."
    INPUT_TYPE = DocumentInput
    OUTPUT_TYPE = Record
    VALIDATORS = [IsValidJsonValidator, MatchesSchemaValidator(Record), GroundedValidator]
    MAX_RETRIES = 2

    def execute(self, input_data: DocumentInput, conversation: Conversation) -> str:
        # The document stays the same, so a sum that an earlier attempt checked need not be checked again.
        if SUM_OK in conversation.context.state:
            conversation.scratchpad.record(SUM_OK, conversation.context.state[SUM_OK])
        return conversation.ask(TASK.replace("{text}", input_data.text.strip()))
