"""Dates and popularities as integers that sort: the order of every list (contract A14, F2-F4).

A *stamp* is year, month and day as one decimal number, times four, plus what is known: the day 3, the month 2, the year 1. Descending, a
date that is known to the month or year only stands behind all full dates of that period; no date is 0. *Unheard* is a popularity turned
round, in 2^23 steps, so that ascending is most popular first. What must not live here: reading dates of dumps (the build has done that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from datetime import date

_KNOWN = {"day": 3, "month": 2, "year": 1}
_STEPS = 4
_YEAR = 10_000 * _STEPS
LEAST_HEARD = 2**23 - 1
LAST_YEAR = 9_999


def stamp_expr(day: str = "release_date", precision: str = "release_date_precision") -> pl.Expr:
    """Stamps over columns of `YYYY-MM-DD` and precision."""
    digits = pl.col(day).str.replace_all("-", "", literal=True).cast(pl.UInt32)
    return (digits * _STEPS + pl.col(precision).replace_strict(_KNOWN, default=0, return_dtype=pl.UInt32)).fill_null(0).cast(pl.UInt32)


def stamps_of_year(year: int) -> tuple[int, int]:
    """(first, last) stamp that lies in `year`."""
    return year * _YEAR, (year + 1) * _YEAR - 1


def latest_stamp(day: date) -> int:
    """The largest stamp that is not after `day`."""
    return ((day.year * 100 + day.month) * 100 + day.day) * _STEPS + _STEPS - 1


def unheard_expr(popularity: str) -> pl.Expr:
    """`unheard` over a column of popularities 0..1; no popularity is 0."""
    heard = (pl.col(popularity).fill_null(0).clip(0, 1) * LEAST_HEARD).floor().cast(pl.UInt32)
    return pl.lit(LEAST_HEARD, pl.UInt32) - heard


def unheard_sql(popularity: str) -> str:
    """The same in SQL."""
    return f"{LEAST_HEARD} - floor({popularity} * {LEAST_HEARD})::BIGINT"
