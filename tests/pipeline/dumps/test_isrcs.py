"""Codes as dumps write them."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.dumps.isrcs import isrc_of, isrc_of_expr

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
    "USAAA2400011/USAAA2400012",
    "0SAAA2400011",
    "USAAA24B0011",
    "O00000000000",
    "USAAA0OOOOOO",
    "",
    "N/A",
]


@pytest.mark.parametrize("value", MEANT)
def test_what_fonts_and_typists_make_of_a_code_is_undone(value: str) -> None:
    assert isrc_of(value) == CODE


@pytest.mark.parametrize("value", NONE)
def test_what_is_no_code_stays_none(value: str) -> None:
    assert isrc_of(value) is None


def test_a_column_is_read_as_single_values_are() -> None:
    values = [*MEANT, *NONE]
    frame = pl.DataFrame({"code": [*values, None]}).select(isrc_of_expr(pl.col("code")))
    assert frame.to_series().to_list() == [*(isrc_of(value) for value in values), None]
    nothing = pl.DataFrame({"code": [None, None]}, schema={"code": pl.String})
    assert nothing.select(isrc_of_expr(pl.col("code"))).to_series().to_list() == [None, None]
