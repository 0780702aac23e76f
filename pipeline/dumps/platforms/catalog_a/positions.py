"""Track positions: free text (`A1`, `2-07`, `CD1-3`, `1.4`, `AA`) -> medium and number where they can be read, and lists of positions."""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN = r"(?i)^(?:[a-z]{2,}-)?(\d{1,3})[a-z]?$"
_MEDIUM_AND_NUMBER = r"(?i)^(?:[a-z]{2,} ?)?(\d{1,3})[-.](\d{1,3})[a-z]?$"
_SIDE = r"(?i)^([a-z])(?:\.? ?\d{1,3}(?:[a-z]|\.\d{1,2})?)?$"
_MEDIUM_OF_SIDE = {letter: number // 2 + 1 for number, letter in enumerate(ascii_uppercase)}
_VIDEO = r"(?i)video|^(?:dvd|vhs|vcd|laserdisc)"

_SEPARATOR = re.compile(r"\s*[,;&]\s*|\s+and\s+", re.IGNORECASE)
_RANGE_WORD = re.compile(r"\s+(?:to|through|thru|till)\s+", re.IGNORECASE)
_DASH = re.compile(r"\s*[-\u2013]\s*")
_ALL = re.compile(r"(?i)all(?: tracks?)?")
_TOKEN = re.compile(r"[a-z]*\d+(?:[-.]\d+)*[a-z]?|\b[a-z]{1,2}\b", re.IGNORECASE)


def number_tracks(tracks: pl.DataFrame) -> pl.DataFrame:
    """Add disc_number and track_number (Int16, null when unknown) to rows with release, position (trimmed) and is_single_medium.

    A letter is a side, two to a medium, and the tracks of a medium are counted over its two sides.
    """
    position = pl.col("position")
    pair = position.str.extract_groups(_MEDIUM_AND_NUMBER)
    side = position.str.extract(_SIDE).str.to_uppercase()
    tracks = tracks.with_columns(
        # Sides A and B are medium 1, C and D medium 2.
        _side=side.replace_strict(_MEDIUM_OF_SIDE, default=None, return_dtype=pl.Int16),
        _medium=pair.struct.field("1").cast(pl.Int16),
        _number=pl.coalesce(pair.struct.field("2"), position.str.extract(_PLAIN)).cast(pl.Int16),
    )
    on_medium = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("release", "_side").cast(pl.Int16, strict=False)
    # A plain number says nothing about the medium; only a release of one medium makes it certain.
    only_medium = pl.when(pl.col("is_single_medium") & pl.col("_number").is_not_null()).then(pl.lit(1, dtype=pl.Int16))
    return tracks.with_columns(
        disc_number=pl.coalesce("_side", pl.when(pl.col("_medium") > 0).then("_medium"), only_medium),
        track_number=pl.when(pl.col("_side").is_not_null()).then(on_medium).otherwise("_number"),
    ).drop("_side", "_medium", "_number")


def is_video_position(position: pl.Expr) -> pl.Expr:
    """Return whether the position marks a video: `CD1-Video`, `DVD-1`, `Video 1`."""
    return position.str.contains(_VIDEO)


def resolve_positions(text: str, positions: Mapping[str, int]) -> tuple[list[int], list[str]]:
    """Return the numbers of the positions in a list such as `A1 to A3, B2`, and the parts that are not positions.

    `positions`: lower-case position -> number, in document order.
    """
    if _ALL.fullmatch(text.strip()):
        return list(positions.values()), []
    found: list[int] = []
    unknown: list[str] = []
    for part in filter(None, _SEPARATOR.split(text.strip().lower())):
        # As a position first: `1-2` is a position on box sets and a range elsewhere.
        numbers = [positions[part]] if part in positions else _resolve_range(part, positions)
        found += numbers
        if not numbers:
            unknown.append(part)
    return found, unknown


def _resolve_range(text: str, positions: Mapping[str, int]) -> list[int]:
    """Return the numbers from one position to another. A dash may belong to a position (`1-2 - 1-5`), so every dash is tried."""
    for separator in [*_RANGE_WORD.finditer(text), *_DASH.finditer(text)]:
        first, last = positions.get(text[: separator.start()]), positions.get(text[separator.end() :])
        if first is not None and last is not None and first <= last:
            return [number for number in positions.values() if first <= number <= last]
    return []


def find_described_position(text: str, positions: Mapping[str, int]) -> int | None:
    """Return the one position that a description names (`Track A1`, `ISRC for track 2`); None for none or several."""
    named = {positions[token] for token in _TOKEN.findall(text.lower()) if token in positions}
    return named.pop() if len(named) == 1 else None
