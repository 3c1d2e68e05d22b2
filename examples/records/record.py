"""What goes in and what comes out: a document, and the flat record that the office files of it."""

import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agency.execution import ExecutionInputType


class Kind(StrEnum):
    """What a paper is, whatever its title says."""

    INVOICE = "invoice"
    ORDER = "order"
    CV = "cv"
    MEETING_NOTE = "meeting_note"
    ADVERT = "advert"


class DocumentInput(ExecutionInputType):
    """One paper as it came in."""

    document: str = Field(min_length=1, max_length=200, description="File name, for people only.")
    text: str = Field(min_length=1, max_length=6_000, description="The whole text of the document.")


def _null(value: Any) -> Any:
    """`None` for the words that models write where they mean null."""
    words = {"", "null", "none", "n/a", "not specified", "not applicable"}
    return None if isinstance(value, str) and value.strip().casefold() in words else value


NoWord = BeforeValidator(_null)


class Record(BaseModel):
    """The record of one document. Flat and small, so that a model on a laptop can fill it."""

    model_config = ConfigDict(extra="forbid")

    kind: Kind
    name: str = Field(min_length=1, description="sender of the invoice or advert, orderer, person, or writer")
    vendor_id: Annotated[str | None, NoWord] = Field(description="what look_up_vendor said")
    date: Annotated[datetime.date | None, NoWord] = Field(description="when it was written, YYYY-MM-DD")
    reference: Annotated[str | None, NoWord] = Field(description="number of the invoice or order")
    total: Annotated[float | None, NoWord] = Field(ge=0, description="amount to pay, like 1234.50")
    sum_ok: Annotated[bool | None, NoWord] = Field(description="what check_total said")
