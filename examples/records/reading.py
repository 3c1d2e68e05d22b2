"""Reads names, amounts and dates as offices print them, in English and in German. Pure."""

import re
import unicodedata
from datetime import date
from decimal import Decimal

_MONTHS = (
    ("january", "januar"),
    ("february", "februar"),
    ("march", "märz"),
    ("april", "april"),
    ("may", "mai"),
    ("june", "juni"),
    ("july", "juli"),
    ("august", "august"),
    ("september", "september"),
    ("october", "oktober"),
    ("november", "november"),
    ("december", "dezember"),
)
_MONTH_NUMBERS = {
    form: number
    for number, names in enumerate(_MONTHS, start=1)
    for name in names
    for form in (name, name[:3])
}
_AMOUNT = re.compile(r"\d+(?:[.,']\d+)*")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_DOTTED_DATE = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_SLASHED_DATE = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")
_DAY_FIRST = re.compile(r"\b(\d{1,2})\.?\s+([^\W\d]+)\.?,?\s+(\d{4})\b")
_MONTH_FIRST = re.compile(r"\b([^\W\d]+)\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b")


def plain(text: str) -> str:
    """The text in one case, with single blanks and without a closing full stop: for comparing names."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".,;")


def amount(text: str) -> Decimal:
    """The one amount in a text such as "1.234,56 €" or "$1,234.56"; `ValueError` if there is not one."""
    found = _AMOUNT.findall(text)
    if len(found) != 1:
        raise ValueError(f"{text!r} is not one amount; write it as printed, like 1,234.50 or 1.234,50")
    return _value(found[0])


def amounts_in(text: str) -> set[Decimal]:
    """Every number of the text."""
    return {_value(found) for found in _AMOUNT.findall(text)}


def cents(value: float | Decimal) -> Decimal:
    """A value to two places, so that 1234.5 and 1234.50 are the same."""
    return Decimal(str(value)).quantize(Decimal("0.01"))


def _value(digits: str) -> Decimal:
    """The last separator is the decimal one unless three digits follow it, as in 2,350."""
    whole, fraction = _split(digits)
    if len(fraction) == 3 and whole != "0":
        whole, fraction = whole + fraction, ""
    grouped = re.sub(r"[.,']", "", whole)
    return cents(Decimal(f"{grouped}.{fraction or '0'}"))


def _split(digits: str) -> tuple[str, str]:
    at = max(digits.rfind(separator) for separator in ".,'")
    return (digits, "") if at < 0 else (digits[:at], digits[at + 1 :])


def dates_in(text: str) -> set[date]:
    """Every date of the text; 5/6/2026 counts as both the fifth of June and the sixth of May."""
    found = {_date(*map(int, match)) for match in _ISO_DATE.findall(text)}
    found |= {_date(int(year), int(month), int(day)) for day, month, year in _DOTTED_DATE.findall(text)}
    for first, second, year in _SLASHED_DATE.findall(text):
        found |= {_date(int(year), int(second), int(first)), _date(int(year), int(first), int(second))}
    found |= {_named(year, month, day) for day, month, year in _DAY_FIRST.findall(text)}
    found |= {_named(year, month, day) for month, day, year in _MONTH_FIRST.findall(text)}
    return {each for each in found if each is not None}


def _named(year: str, month: str, day: str) -> date | None:
    return _date(int(year), _MONTH_NUMBERS.get(month.casefold(), 0), int(day))


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
