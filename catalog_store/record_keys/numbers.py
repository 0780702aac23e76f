"""Numbers that stand for names: compared, joined and added up in a fraction of the time that texts take.

Two names have one number with a chance of 1 in 2^64; whoever uses them says what comes of that. The hash is Polars' own: another version
of Polars may hash otherwise. What must not live here: what the numbers are looked up for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

GOLDEN = pl.lit(0x9E3779B97F4A7C15, dtype=pl.UInt64)
"""Odd, so that no hash is lost when the product wraps."""


def hashed(columns: Iterable[str | pl.Expr], seed: int = 0) -> pl.Expr:
    """A 64-bit hash over several columns: cheaper than that of a struct, joined on and grouped by in a fraction of the time of texts."""
    found = pl.lit(seed, dtype=pl.UInt64)
    for column in columns:
        found = found * GOLDEN + (pl.col(column) if isinstance(column, str) else column).hash(seed)
    return found


def record_number() -> pl.Expr:
    """A number for a source record, of columns platform and external_id."""
    return hashed(("platform", "external_id"))


def release_number() -> pl.Expr:
    """A number for a platform's release, of columns platform and release_id."""
    return hashed(("platform", "release_id"))
