"""Accepts a record only if document, directory and arithmetic bear out every field; names each other one."""

import re
from datetime import date

from agency.execution import (
    BaseExecutionValidator,
    ExecutionInputType,
    ToolScratchpad,
    ValidatorFailureResponse,
    ValidatorResponse,
    ValidatorSuccessResponse,
)
from records.reading import amounts_in, cents, dates_in, plain
from records.record import DocumentInput, Kind, Record
from records.tools import SUM_OK
from records.vendors import vendor_id

_NUMBER = re.compile(r"\S*\d\S*")
# What a kind of paper cannot have. The directory and the sums are about invoices only.
_ABSENT = {
    Kind.INVOICE: (),
    Kind.ORDER: ("vendor_id", "sum_ok"),
    Kind.CV: ("vendor_id", "reference", "total", "sum_ok"),
    Kind.MEETING_NOTE: ("vendor_id", "reference", "total", "sum_ok"),
    Kind.ADVERT: ("vendor_id", "date", "reference", "total", "sum_ok"),
}
_NEEDED = {
    Kind.INVOICE: ("date", "reference", "total"),
    Kind.ORDER: ("date",),
    Kind.CV: (),
    Kind.MEETING_NOTE: ("date",),
    Kind.ADVERT: (),
}


class GroundedValidator(BaseExecutionValidator):
    """Each value must occur in the document, or be what the directory and the arithmetic say.

    Expects a response that fits `Record` (place it after the schema validator) and a `DocumentInput`.
    The feedback has one line per field that does not hold.
    """

    def validate(
        self, response: str, execution_input: ExecutionInputType | None, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        if not isinstance(execution_input, DocumentInput):
            raise TypeError("GroundedValidator needs a DocumentInput to compare with")
        record = Record.model_validate_json(response)
        faults = not_in_document(record, execution_input.text) | unfit_for_kind(record)
        if record.kind is Kind.INVOICE:
            faults |= unproven(record, tool_scratchpad.read(SUM_OK))
        return ValidatorFailureResponse(_feedback(faults)) if faults else ValidatorSuccessResponse()


def not_in_document(record: Record, text: str) -> dict[str, str]:
    """Per field, what is wrong with a value that the document does not have."""
    faults: dict[str, str] = {}
    if plain(record.name) not in plain(text):
        faults["name"] = f"{record.name!r} is not in the document; copy the name as printed"
    if record.date and record.date not in dates_in(text):
        faults["date"] = f"{record.date} is not in the document{_seen(dates_in(text))}"
    if record.reference and not _is_number_of(record.reference, text):
        faults["reference"] = (
            f"{record.reference!r} is not in the document; copy the printed number, or use null"
        )
    if record.total is not None and cents(record.total) not in amounts_in(text):
        faults["total"] = f"{cents(record.total)} is not in the document; copy the amount to pay as printed"
    return faults


def unfit_for_kind(record: Record) -> dict[str, str]:
    """Per field, what a paper of this kind must or cannot have."""
    faults = {
        field: f"must be null for kind {record.kind}"
        for field in _ABSENT[record.kind]
        if getattr(record, field) is not None
    }
    faults |= {
        field: f"kind {record.kind} has one; if this document has none, the kind is wrong"
        for field in _NEEDED[record.kind]
        if getattr(record, field) is None
    }
    return faults


def unproven(invoice: Record, sum_ok: bool | None) -> dict[str, str]:
    """Per field, where an invoice contradicts the directory or the arithmetic; `sum_ok` as it was checked."""
    faults: dict[str, str] = {}
    if invoice.vendor_id != vendor_id(invoice.name):
        faults["vendor_id"] = "is not what the directory says; call look_up_vendor with the name"
    if sum_ok is None:
        faults["sum_ok"] = "nothing was added up; call check_total with the amounts and the total"
    elif invoice.sum_ok is not sum_ok:
        said = str(sum_ok).lower()
        faults["sum_ok"] = f"must be {said}, as check_total said; the total stays as printed"
    return faults


def _is_number_of(reference: str, text: str) -> bool:
    """Whether the reference is one printed word with a digit in it, and no date."""
    printed = plain(reference) in plain(text)
    return printed and bool(_NUMBER.fullmatch(reference)) and not dates_in(reference)


def _seen(dates: set[date]) -> str:
    return f"; it has {' and '.join(str(each) for each in sorted(dates))}" if dates else "; use null"


def _feedback(faults: dict[str, str]) -> str:
    lines = [f"- {field}: {fault}" for field, fault in faults.items()]
    return "\n".join(["Your record is not right yet:", *lines, "Correct this and send the whole record."])
