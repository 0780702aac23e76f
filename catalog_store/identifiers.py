"""ISRC, ISWC, GTIN and platform ids: normalisation and checks, for columns (Polars expressions) and for single values.

Both forms share their patterns, so a lookup accepts what a build accepts. Sources: ISO 3901 (ISRC, no check digit), ISO 15707 (ISWC), GS1
General Specifications (GTIN). Nothing is guessed: a value that does not fit is null, and the caller reports it.
"""

from __future__ import annotations

import re

import polars as pl

ISRC_SHAPE = r"^[A-Z]{2}[A-Z0-9]{3}[0-9]{7}$"
ISWC_SHAPE = r"^T[0-9]{10}$"
UUID_SHAPE = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
STREAMSVC_A_SHAPE = r"^[0-9A-Za-z]{22}$"
"""Ids of 22 base-62 characters, case-sensitive."""
BARCODE_SHAPE = r"^ *[0-9](?:[ .-]?[0-9]){7,13} *$"
"""8 to 14 digits, blanks around and single separators between them allowed."""
NUMBER_SHAPE = r"^[0-9]{1,19}$"

_ISRC_PREFIX = r"^ISRC[ :-]*"
_SEPARATORS = r"[\s\-\u2010-\u2015._]"
_SHORTEST_GTIN = 7
"""Digits that must remain without leading zeros: shorter ones are fillers, not barcodes."""

_JUNK_ISRC = r"^[A-Z]{2}[A-Z0-9]{3}0{7}$"
_BARE_ISRC = re.compile(r"(?!ISRC)[A-Z]{2}[A-Z0-9]{3}(?!0{7})[0-9]{7}")
"""An ISRC as stored. Most lookups have this form, and one pattern recognises it instead of four."""


def normalise_isrc_expr(value: pl.Expr) -> pl.Expr:
    """Normalise a text to an ISRC or null: drop a leading `ISRC`, spaces and hyphens, raise letters, check the shape.

    Longer strings are not cut to twelve characters: a wrong code is worse than none. All-zero designations (empty-drive readings) are null.
    """
    return value.map_batches(_normalise_isrcs, return_dtype=pl.String, is_elementwise=True)


def _normalise_isrcs(values: pl.Series) -> pl.Series:
    # Step by step, because an expression computes its parts again wherever they occur.
    codes = values.str.strip_chars().str.to_uppercase().str.replace(_ISRC_PREFIX, "").str.replace_all(_SEPARATORS, "")
    return codes.set(~(codes.str.contains(ISRC_SHAPE) & ~codes.str.contains(_JUNK_ISRC)), None)


def normalise_isrc(value: str) -> str | None:
    """Return the ISRC of one value as `normalise_isrc_expr` does."""
    code = parse_isrc(value)
    return code if code and not re.search(_JUNK_ISRC, code) else None


def parse_isrc(value: str) -> str | None:
    """Return the ISRC whatever its digits. A code that nobody can carry has the right shape, so a lookup answers 404 and not 400."""
    if _BARE_ISRC.fullmatch(value):
        return value
    code = re.sub(_SEPARATORS, "", re.sub(_ISRC_PREFIX, "", value.strip().upper()))
    return code if re.fullmatch(ISRC_SHAPE, code) else None


def normalise_iswc_expr(value: pl.Expr) -> pl.Expr:
    """Normalise a text to a bare ISWC (`T` and ten digits) with a right check digit, or null."""
    return value.map_batches(_normalise_iswcs, return_dtype=pl.String, is_elementwise=True)


def _normalise_iswcs(values: pl.Series) -> pl.Series:
    codes = values.str.to_uppercase().str.replace_all(_SEPARATORS, "")
    codes = codes.set(~codes.str.contains(ISWC_SHAPE), None)
    number = pl.col("number")
    # ISO 15707: `T` counts as 1, digit i as i times its value; the check digit makes the sum a multiple of 10.
    total = 1 + pl.sum_horizontal((number // 10 ** (10 - index) % 10) * index for index in range(1, 10)) + number % 10
    sums = codes.str.slice(1).cast(pl.Int64).alias("number").to_frame().select(total).to_series()
    return codes.set(sums % 10 != 0, None)


def normalise_iswc(value: str) -> str | None:
    """Return the bare ISWC, or None for another shape. A wrong check digit passes, because a lookup answers 404 for it and not 400."""
    code = re.sub(_SEPARATORS, "", value.strip().upper())
    return code if re.fullmatch(ISWC_SHAPE, code) else None


def normalise_gtin_expr(value: pl.Expr) -> pl.Expr:
    """Normalise barcode text (8 to 14 digits among spaces, dashes, a trailing `>`) to a GTIN-14 with a right check digit, or null."""
    return value.map_batches(_normalise_gtins, return_dtype=pl.String, is_elementwise=True)


def _normalise_gtins(values: pl.Series) -> pl.Series:
    # Step by step: an expression that names the number 14 times would read the text as often.
    digits = values.str.replace_all(r"[\s\-.>]", "")
    numbers = digits.set(~digits.str.contains(r"^[0-9]{8,14}$"), None).cast(pl.Int64)
    number = pl.col("number")
    # GS1: digits weigh 3 and 1 in turn from the left of 14; the check digit makes the sum a multiple of 10.
    total = pl.sum_horizontal((number // 10**power % 10) * (3 if power % 2 else 1) for power in range(14))
    is_code = (total % 10 == 0) & (number >= 10 ** (_SHORTEST_GTIN - 1))
    return numbers.alias("number").to_frame().select(pl.when(is_code).then(number).cast(pl.String).str.zfill(14)).to_series()


def parse_gtin(value: str) -> str | None:
    """Return the GTIN-14 of a barcode, or None for another shape. A wrong check digit passes, because a lookup finds nothing for it."""
    return re.sub(r"[^0-9]", "", value).zfill(14) if re.fullmatch(BARCODE_SHAPE, value) else None
