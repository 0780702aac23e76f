"""Dates and popularities as integers that sort: the order of every list (contract A14, F2-F4).

A *stamp* is year, month and day as one decimal number, times four, plus its precision: day 3, month 2, year 1. In descending order, a date
known only to the month or year comes after all full dates of that period. No date is 0. *Unheard* is the inverse of popularity in 2^23
steps, so ascending order puts the most popular first. The readers of dumps parse dates; this module does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from datetime import date

_KNOWN = {"day": 3, "month": 2, "year": 1}
_STEPS = 4
# Month and day take four decimal digits.
_YEAR = 10_000 * _STEPS
# 2^23 steps and a recording id of 40 bits fit the 64 bits of a packed recording (serving/schema.py: WORK_ID_BITS).
LEAST_HEARD = 2**23 - 1
LAST_YEAR = 9_999


def encode_stamp_expr(day: str = "release_date", precision: str = "release_date_precision") -> pl.Expr:
    """Return stamps over columns of dates and precisions."""
    known = pl.col(day).dt
    digits = known.year().cast(pl.UInt32) * 10_000 + known.month().cast(pl.UInt32) * 100 + known.day()
    return (digits * _STEPS + pl.col(precision).replace_strict(_KNOWN, default=0, return_dtype=pl.UInt32)).fill_null(0).cast(pl.UInt32)


def compute_year_stamps(year: int) -> tuple[int, int]:
    """Return the (first, last) stamp of `year`."""
    return year * _YEAR, (year + 1) * _YEAR - 1


def compute_latest_stamp(day: date) -> int:
    """Return the largest stamp that is not after `day`."""
    return ((day.year * 100 + day.month) * 100 + day.day) * _STEPS + _STEPS - 1


def encode_unheard_expr(popularity: str) -> pl.Expr:
    """Return `unheard` over a column of popularities 0..1; a missing popularity counts as 0."""
    heard = (pl.col(popularity).fill_null(0).clip(0, 1) * LEAST_HEARD).floor().cast(pl.UInt32)
    return pl.lit(LEAST_HEARD, pl.UInt32) - heard


def render_unheard_sql(popularity: str) -> str:
    """Return the SQL form of `encode_unheard_expr`."""
    return f"{LEAST_HEARD} - floor({popularity} * {LEAST_HEARD})::BIGINT"
