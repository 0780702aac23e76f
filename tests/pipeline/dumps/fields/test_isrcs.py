"""Codes as dumps write them."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.dumps.fields.isrcs import read_isrc, read_isrc_lists

CODE = "USAAA2400011"
MEANT = [
    CODE,
    "isrc us-aaa-24-00011",
    "\uff35\uff33\uff21\uff21\uff21\uff12\uff14\uff10\uff10\uff10\uff11\uff11",
    f"\ufeff{CODE}\u200b",
    f'"{CODE}"',
    f"{CODE};",
    "USAAA24OO011",
    "US-AAA-24-OOOl1",
    "USAAA24000I1",
]
NONE = [
    "USAAA240001",
    "USAAA24000111",
    "USAAA24OOOOO1O",
    f"{CODE}/USAAA2400012",
    "0SAAA2400011",
    "USAAA24B0011",
    "O00000000000",
    "USAAA0OOOOOO",
    "",
    "N/A",
]


@pytest.mark.parametrize("value", MEANT)
def test_code_loses_marks_of_fonts_and_typists(value: str) -> None:
    assert read_isrc(value) == CODE


@pytest.mark.parametrize("value", NONE)
def test_text_without_a_code_gives_none(value: str) -> None:
    assert read_isrc(value) is None


OTHER = "USAAA2400012"
SEVERAL = {
    f"{CODE}; {OTHER}": ([CODE, OTHER], None),
    f"{CODE}/{OTHER}": ([CODE, OTHER], None),
    f"{CODE} {OTHER}": ([CODE, OTHER], None),
    f"US-AAA-24-00011, us-aaa-24-00012,{CODE}": ([CODE, OTHER], None),
    f'["{CODE}", "{OTHER}"]': ([CODE, OTHER], None),
    f"ISRC: {CODE} | none": ([CODE], "none"),
    f"{CODE} twice": ([], f"{CODE} twice"),
    "N/A": ([], "N/A"),
    " ; ": ([], ";"),
    " ": ([], None),
}


def test_column_gives_the_same_codes_as_its_single_values() -> None:
    values = [*SEVERAL, *MEANT, *NONE]
    read = read_isrc_lists(pl.Series([*values, None], dtype=pl.String)).rows()
    assert read[: len(SEVERAL)] == list(SEVERAL.values())
    singles = [read_isrc(value) for value in MEANT]
    assert read[len(SEVERAL) : len(SEVERAL) + len(MEANT)] == [([code], None) for code in singles]
    assert [codes for codes, _ in read[-1 - len(NONE) :]] == [[CODE, OTHER] if "/USAAA" in value else [] for value in NONE] + [[]]
    assert read_isrc_lists(pl.Series([None, None], dtype=pl.String)).rows() == [([], None), ([], None)]
    assert read_isrc_lists(pl.Series([], dtype=pl.String)).rows() == []
