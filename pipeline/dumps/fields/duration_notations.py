"""Durations in the notations of dumps, as milliseconds.

Each platform documents one notation. Dumps that passed through other hands mix them: `4:05`, `4m 5sec`, `4'05"`, `PT4M5S`, `245000`,
`4.08`. So every adapter reads all of them. Only a bare number needs to know its unit.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import polars as pl

Unit = Literal["ms", "s"]

_ISO_SHAPE = r"^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?$"
# Months and years have no fixed length and do not occur.
_ISO_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1000)
# Beside an hour, minutes and seconds end at 59. Alone, minutes may be more: `101:30` is a DJ mix.
_CLOCK_SHAPE = r"^\(?\s*(?:(?:(\d{1,3}):([0-5]?\d))|(\d{1,3}))[:'\u2019\u2032]\s*([0-5]\d(?:[.,]\d+)?)\s*(?:\"|''|\u201d|\u2033)?\s*\)?$"
_CLOCK_UNITS_MS = (3_600_000, 60_000, 60_000, 1000)
_WORDS_SHAPE = (
    r"(?i)^(?:(\d+) ?(?:h|hrs?|hours?|std)\.?)?[ ,]*(?:(\d+(?:[.,]\d+)?) ?(?:m|mins?|minutes?)\.?)?[ ,]*"
    r"(?:(\d+(?:[.,]\d+)?) ?(?:s|secs?|seconds?|sek)\.?)?[ ,]*(?:(\d+(?:[.,]\d+)?) ?(?:ms|msecs?|milliseconds?)\.?)?$"
)
_WORDS_UNITS_MS = (3_600_000, 60_000, 1000, 1)
# Shorter ones, `4,080`, have a decimal comma.
_THOUSANDS_SHAPE = r"^\d{2,3}(?:,\d{3})+$"
_NUMBER_SHAPE = r"^\d+(?:[.,]\d+)?$"

LONGEST_MS = 2**31 - 1
"""Staging tables hold 32 bits."""
SHORTEST_AS_MS = 90_000
"""A whole number from here on is milliseconds wherever it is: as seconds it would be more than a day."""
LONGEST_AS_MINUTES = 60
"""A number with a fraction below is minutes: `4.08` is 4:05. No recording lasts four milliseconds."""
SHORTEST_AS_SECONDS = 20
"""A whole number below it has no unit that its size reveals: 4 may be minutes or seconds."""


def parse_duration_ms(value: pl.Expr, number: Unit | None = None) -> pl.Expr:
    """Return a duration in any known notation as Int64 milliseconds; null for other text, for zero and above LONGEST_MS.

    `number`: the unit of bare numbers as the platform documents it; None: it documents none, and the size decides.
    """
    return value.map_batches(partial(_read_durations, unit=number), return_dtype=pl.Int64, is_elementwise=True)


def _read_durations(values: pl.Series, unit: Unit | None) -> pl.Series:
    text = pl.col("text")
    # One platform puts its values in square brackets.
    texts = values.alias("text").to_frame().select(text.str.strip_chars(" \t\r\n[]"))
    # Lazily, because only then an expression that occurs several times is computed once.
    found = texts.lazy().select(_parse_number_ms(text, unit)).collect().to_series()
    others = texts.filter(found.is_null()).drop_nulls()
    if others.height:
        # Each notation once: songs share a few thousand durations, and the patterns cost more than all else that is read of a record.
        notations = pl.coalesce(
            _sum_units(text, _CLOCK_SHAPE, _CLOCK_UNITS_MS),
            _sum_units(text.str.to_uppercase(), _ISO_SHAPE, _ISO_UNITS_MS),
            _sum_units(text, _WORDS_SHAPE, _WORDS_UNITS_MS),
        )
        known = others.unique().lazy().with_columns(found=notations).collect()
        found = found.fill_null(texts.join(known, on="text", how="left", maintain_order="left")["found"])
    return pl.select(pl.when(found.is_between(1, LONGEST_MS)).then(found)).to_series()


def _parse_number_ms(text: pl.Expr, unit: Unit | None) -> pl.Expr:
    # Patterns cost ten times a look at a byte, and hardly any number has a comma.
    is_comma = text.str.contains(",", literal=True)
    has_thousands = pl.when(is_comma).then(text).str.contains(_THOUSANDS_SHAPE)
    text = pl.when(has_thousands).then(text.str.replace_all(",", "", literal=True)).otherwise(text)
    bare = pl.when(text.str.contains(_NUMBER_SHAPE)).then(text.str.replace(",", ".", literal=True)).cast(pl.Float64, strict=False)
    is_whole = bare == bare.floor()
    is_minutes = ~is_whole & (bare < LONGEST_AS_MINUTES)
    seconds = pl.when(is_whole & (bare >= SHORTEST_AS_MS)).then(1).otherwise(1000)
    factor = {
        "ms": pl.when(is_minutes).then(60_000).otherwise(1),
        # Fractions of seconds are common (`64.1`), so seconds stay seconds below an hour too.
        "s": seconds,
        None: pl.when(is_minutes).then(60_000).when(bare >= SHORTEST_AS_SECONDS).then(seconds),
    }[unit]
    # Round before the cast, which truncates: 64.1 * 1000 is 64099.99999999999 in binary.
    return (bare * factor).round().cast(pl.Int64, strict=False)


def _sum_units(value: pl.Expr, shape: str, units: tuple[int, ...]) -> pl.Expr:
    groups = value.str.extract_groups(shape)
    parts = [
        groups.struct.field(str(index)).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False) * unit
        for index, unit in enumerate(units, start=1)
    ]
    has_part = pl.any_horizontal(part.is_not_null() for part in parts)
    return pl.when(has_part).then(pl.sum_horizontal(parts)).round().cast(pl.Int64, strict=False)
