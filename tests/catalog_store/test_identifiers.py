from __future__ import annotations

import string

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.identifiers import normalise_gtin_expr, normalise_isrc, normalise_isrc_expr, normalise_iswc, normalise_iswc_expr

UPPER_ALNUM = string.ascii_uppercase + string.digits


@st.composite
def isrcs(draw: st.DrawFn) -> str:
    country = draw(st.text(string.ascii_uppercase, min_size=2, max_size=2))
    registrant = draw(st.text(UPPER_ALNUM, min_size=3, max_size=3))
    return f"{country}{registrant}{draw(st.integers(1, 9_999_999)):07d}"


@st.composite
def iswcs(draw: st.DrawFn) -> str:
    digits = f"{draw(st.integers(0, 999_999_999)):09d}"
    check = (10 - (1 + sum(i * int(d) for i, d in enumerate(digits, start=1))) % 10) % 10
    return f"T{digits}{check}"


def one(expression: pl.Expr, value: str | None) -> str | None:
    found: str | None = pl.DataFrame({"value": [value]}, schema={"value": pl.String}).select(expression).item()
    return found


@given(isrcs())
def test_every_spelling_of_an_isrc_is_one_code(code: str) -> None:
    spelled = (code, code.lower(), f" {code} ", f"{code[:2]}-{code[2:5]}-{code[5:7]}-{code[7:]}", f"ISRC {code}", f"isrc:{code}")
    assert {normalise_isrc(text) for text in spelled} == {code}
    assert {one(normalise_isrc_expr(pl.col("value")), text) for text in spelled} == {code}


@given(
    st.one_of(
        st.text(max_size=20), isrcs(), isrcs().map(lambda code: code + "\n"), isrcs().map(lambda code: code[:5] + "\u2013" + code[5:])
    )
)
def test_column_and_single_value_agree_on_isrcs(text: str) -> None:
    assert normalise_isrc(text) == one(normalise_isrc_expr(pl.col("value")), text)


@pytest.mark.parametrize(
    "text", ["", "GBAYE", "GBAYE00012345", "GBAYE000123", "1BAYE0001234", "GBAYE000123X", "GBAYE0000000", "GBAYE0001234,GBAYE0001235"]
)
def test_text_other_than_an_isrc_is_null(text: str) -> None:
    assert normalise_isrc(text) is None
    assert one(normalise_isrc_expr(pl.col("value")), text) is None


@given(iswcs())
def test_every_spelling_of_an_iswc_is_one_code(code: str) -> None:
    for text in (code, code.lower(), f"T-{code[1:4]}.{code[4:7]}.{code[7:10]}-{code[10]}", f" {code} "):
        assert normalise_iswc(text) == code
        assert one(normalise_iswc_expr(pl.col("value")), text) == code


@given(iswcs(), st.integers(1, 9))
def test_wrong_check_digit_is_detected(code: str, more: int) -> None:
    wrong = code[:-1] + str((int(code[-1]) + more) % 10)
    assert one(normalise_iswc_expr(pl.col("value")), wrong) is None
    assert normalise_iswc(wrong) == wrong


@pytest.mark.parametrize("text", ["", "T", "T034524680", "T03452468011", "0345246801", "TX345246801", "T034524680A"])
def test_text_other_than_an_iswc_is_null(text: str) -> None:
    assert normalise_iswc(text) is None
    assert one(normalise_iswc_expr(pl.col("value")), text) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("5099749534728", "05099749534728"),
        ("509974953472-8", "05099749534728"),
        ("0 7464 40477 2 1", "00074644047721"),
        ("074644047721>", "00074644047721"),
        ("075992732123", "00075992732123"),
        ("036000291452", "00036000291452"),
        ("96385074", "00000096385074"),
        ("00000000", None),
        ("5099749534729", None),
        ("none", None),
        ("", None),
        (None, None),
    ],
)
def test_barcode_is_normalised_to_gtin_14(text: str | None, code: str | None) -> None:
    assert one(normalise_gtin_expr(pl.col("value")), text) == code


@given(st.integers(10**7, 10**13 - 1))
@settings(max_examples=15)
def test_a_right_check_digit_makes_a_barcode_and_any_other_does_not(number: int) -> None:
    digits = f"{number:013d}"
    check = (10 - sum((3 if i % 2 == 0 else 1) * int(d) for i, d in enumerate(digits)) % 10) % 10
    accepted = [last for last in range(10) if one(normalise_gtin_expr(pl.col("value")), f"{digits}{last}")]
    assert accepted == [check]
