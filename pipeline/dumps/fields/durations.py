"""Durations in the formats of dumps, as milliseconds."""

from __future__ import annotations

import polars as pl

_ISO_SHAPE = r"^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?$"
# Months and years have no fixed length and do not occur.
_ISO_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1000)
_CLOCK_SHAPE = r"^(?:(\d+):)?(\d{1,3}):(\d{2}(?:\.\d+)?)$"
_CLOCK_UNITS_MS = (3_600_000, 60_000, 1000)


def parse_iso_ms(value: pl.Expr) -> pl.Expr:
    """Return ISO-8601 `P[nD]T[nH][nM][n[.n]S]` as Int64 milliseconds; null for other text and without a unit."""
    return _sum_units(value.str.strip_chars().str.to_uppercase(), _ISO_SHAPE, _ISO_UNITS_MS)


def parse_clock_ms(value: pl.Expr) -> pl.Expr:
    """Return `m:ss` or `h:mm:ss` as Int64 milliseconds, else null."""
    return _sum_units(value.str.strip_chars(), _CLOCK_SHAPE, _CLOCK_UNITS_MS)


def parse_seconds_ms(value: pl.Expr) -> pl.Expr:
    """Return seconds as text, with or without a fraction, as Int64 milliseconds, else null."""
    # Round before the cast, which truncates: 64.1 * 1000 is 64099.99999999999 in binary.
    return (value.str.strip_chars().cast(pl.Float64, strict=False) * 1000).round().cast(pl.Int64, strict=False)


def parse_whole_ms(value: pl.Expr) -> pl.Expr:
    """Return milliseconds as text as Int64, else null."""
    return value.str.strip_chars().cast(pl.Float64, strict=False).round().cast(pl.Int64, strict=False)


def _sum_units(value: pl.Expr, shape: str, units: tuple[int, ...]) -> pl.Expr:
    groups = value.str.extract_groups(shape)
    parts = [
        groups.struct.field(str(index)).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False) * unit
        for index, unit in enumerate(units, start=1)
    ]
    has_part = pl.any_horizontal(part.is_not_null() for part in parts)
    return pl.when(has_part).then(pl.sum_horizontal(parts)).round().cast(pl.Int64, strict=False)
