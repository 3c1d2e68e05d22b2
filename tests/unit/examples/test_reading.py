"""Names, amounts and dates are read as offices print them."""

from datetime import date
from decimal import Decimal

import pytest
from records.reading import amount, amounts_in, cents, dates_in, plain


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("1.234,56 €", "1234.56"),
        ("$ 1,234.56", "1234.56"),
        ("1'234.50 CHF", "1234.50"),
        ("12,5", "12.50"),
        ("2,350", "2350.00"),
        ("1.000.000", "1000000.00"),
        ("0.125", "0.12"),
        ("716", "716.00"),
        ("GBP 407.40", "407.40"),
    ],
)
def test_an_amount_is_read_in_english_and_in_german(printed: str, value: str) -> None:
    assert amount(printed) == Decimal(value)


@pytest.mark.parametrize("printed", ["", "free of charge", "10.00 or 12.00"])
def test_what_is_not_one_amount_is_refused_with_the_text_in_question(printed: str) -> None:
    with pytest.raises(ValueError, match=f"{printed!r} is not one amount"):
        amount(printed)


def test_all_amounts_of_a_text_are_found() -> None:
    text = "Gerüst, 4 Tage  1.480,00 €. 19 % MwSt. 281,20"
    assert {cents(4), cents(1480), cents(19), cents(281.2)} == amounts_in(text)


@pytest.mark.parametrize(
    "printed",
    [
        "2026-03-12",
        "12.03.2026",
        "12.3.2026",
        "12. März 2026",
        "12. MÄRZ 2026",
        "12 March 2026",
        "12 Mar 2026",
        "March 12, 2026",
        "Mar. 12th, 2026",
        "Erfurt, den 12. März 2026.",
    ],
)
def test_a_date_is_read_in_many_forms(printed: str) -> None:
    assert dates_in(printed) == {date(2026, 3, 12)}


def test_a_date_of_unclear_order_is_read_both_ways() -> None:
    assert dates_in("5/6/2026") == {date(2026, 6, 5), date(2026, 5, 6)}


@pytest.mark.parametrize("printed", ["31 February 2026", "12 Marzipan 2026", "99.99.2026", "HOS-20417"])
def test_what_is_no_date_is_not_read_as_one(printed: str) -> None:
    assert dates_in(printed) == set()


def test_names_are_compared_without_case_spacing_and_full_stop() -> None:
    assert plain("  Harbour  Office\nSupplies LTD. ") == plain("Harbour Office Supplies Ltd")
