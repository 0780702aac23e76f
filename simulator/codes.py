"""ISRCs, ISWCs and barcodes out of running numbers: all distinct, with valid check digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from simulator.randomness import build_fixed_text, split_digits

if TYPE_CHECKING:
    import numpy.typing as npt

ISRC_COUNTRIES = (
    "US",
    "DE",
    "GB",
    "NL",
    "FR",
    "QM",
    "QZ",
    "FI",
    "IT",
    "JP",
    "KR",
    "SE",
    "BR",
    "ES",
    "TC",
    "GX",
    "CA",
    "AU",
    "RU",
    "GR",
    "IL",
    "BX",
)
ISRC_COUNTRY_WEIGHTS = (33, 16, 13, 8, 5, 4, 3, 4, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5)
_ALPHANUMERIC = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", dtype=np.uint8)
_DESIGNATIONS = 99_999
"""Usable designation codes 1..99999: all zeros mark an empty reading, not a recording."""
_FIRST_REGISTRANT, _REGISTRANTS = 12_000, 36**3 - 12_000
_WORK_NUMBERS = 10**9
_WORK_STEP = 387_420_489
"""Prime to 10^9: the running number times this visits every work number once."""
_ZERO = ord("0")


def assign_registrants(count: int, numbers: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the registrant of each running number below `count`: a different one for every label, as long as there are enough."""
    # A registrant has 99,999 codes; a world with more recordings needs several registrants for each label.
    rounds = count // _DESIGNATIONS + 1
    return numbers // _DESIGNATIONS + rounds * (labels % max(1, _REGISTRANTS // rounds))


def build_isrcs(
    numbers: npt.NDArray[np.int64], countries: npt.NDArray[np.int64], registrants: npt.NDArray[np.int64], years: npt.NDArray[np.int64]
) -> pl.Series:
    """Return an ISRC for each running number, distinct for distinct numbers; `countries` are positions in ISRC_COUNTRIES."""
    holders = split_digits((registrants + _FIRST_REGISTRANT).astype(np.uint64), 36, 3)
    designations = split_digits((numbers % _DESIGNATIONS + 1).astype(np.uint64), 10, 5)
    prefixes = np.array([list(country.encode()) for country in ISRC_COUNTRIES], dtype=np.uint8)[countries]
    year_digits = split_digits((years % 100).astype(np.uint64), 10, 2)
    return build_fixed_text(np.hstack([prefixes, _ALPHANUMERIC[holders], _ALPHANUMERIC[year_digits], _ALPHANUMERIC[designations]]))


def build_iswcs(numbers: npt.NDArray[np.int64]) -> pl.Series:
    """Return a bare ISWC (`T`, nine digits, check digit) for each running number."""
    # Consecutive works get scattered numbers, and no number twice.
    digits = split_digits((numbers * _WORK_STEP % _WORK_NUMBERS).astype(np.uint64), 10, 9)
    # ISO 15707: the prefix T counts 1, the digits 1 to 9 times their place.
    check = (10 - (1 + digits @ np.arange(1, 10)) % 10) % 10
    return build_fixed_text(np.hstack([np.full((len(numbers), 1), ord("T")), digits + _ZERO, (check + _ZERO)[:, None]]).astype(np.uint8))


def format_iswcs(codes: pl.Expr) -> pl.Expr:
    """Return bare ISWCs in the printed form `T-034.524.680-1`."""
    return pl.concat_str(
        pl.lit("T-"),
        codes.str.slice(1, 3),
        pl.lit("."),
        codes.str.slice(4, 3),
        pl.lit("."),
        codes.str.slice(7, 3),
        pl.lit("-"),
        codes.str.slice(10, 1),
    )


def build_gtins(numbers: npt.NDArray[np.int64]) -> pl.Series:
    """Return a GTIN-14 for each running number; every second one fits into a 12-digit UPC."""
    # 12 digits for a UPC, 13 for an EAN: platforms strip leading zeros differently.
    payload = np.where(numbers % 2 == 0, 19_000_000_000, 400_000_000_000) + numbers
    digits = split_digits(payload.astype(np.uint64), 10, 13)
    # GS1: weights 3 and 1 in turns, from the left of 13 digits.
    check = (10 - digits @ np.tile([3, 1], 7)[:13] % 10) % 10
    return build_fixed_text((np.hstack([digits, check[:, None]]) + _ZERO).astype(np.uint8))
