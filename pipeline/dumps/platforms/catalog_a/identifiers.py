"""Barcodes and ISRCs, which the dump keeps in one list per release beside matrix numbers and label codes.

A barcode is the release's. An ISRC is a track's, and its description names the track in prose (`Track A1`), unless there is only one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.identifiers import normalise_gtin_expr
from pipeline.dumps.fields.isrcs import read_isrcs
from pipeline.dumps.platforms.catalog_a.positions import find_described_position, resolve_positions
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IDENTIFIER_PARTS = ("type", "value", "description")

_TRACK_WORD = re.compile(r"\b(?:isrc|tracks?|side)\b[:.]?", re.IGNORECASE)


class TrackList(NamedTuple):
    """The tracks of one release: their row numbers, positions and titles, in document order."""

    rows: Sequence[int]
    positions: Sequence[str]
    titles: Sequence[str]

    def index_by_position(self) -> dict[str, int]:
        """Return lower-case position -> row number. The first of a doubled position counts."""
        by_position: dict[str, int] = {}
        for row, position in zip(self.rows, self.positions, strict=True):
            if position:
                by_position.setdefault(position.lower(), row)
        return by_position


NO_TRACKS = TrackList((), (), ())


class Misfit(NamedTuple):
    """An ISRC that is left out."""

    reason: Reason
    value: str


def find_barcodes(identifiers: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the first good GTIN of each owner (owner, gtin), and the barcode rows that hold none.

    `identifiers` has owner and IDENTIFIER_PARTS.
    """
    # Barcodes come with blanks, dashes and a trailing ` >`; normalise_gtin_expr takes their digits.
    codes = identifiers.filter((pl.col("type") == "Barcode") & (pl.col("value").str.strip_chars() != "")).with_columns(
        gtin=normalise_gtin_expr(pl.col("value"))
    )
    good = codes.filter(pl.col("gtin").is_not_null()).unique("owner", keep="first", maintain_order=True).select("owner", "gtin")
    return good, codes.filter(pl.col("gtin").is_null())


def assign_isrcs(value: str, description: str, tracks: TrackList) -> tuple[list[tuple[int, str]], list[Misfit]]:
    """Return the (row number of the track, code) pairs of one ISRC identifier, and the misfits.

    A misfit is a part that could not be read, or a code whose track cannot be determined.
    """
    codes, strange = read_isrcs(value)
    misfits = [Misfit(Reason.INVALID_ISRC, part) for part in strange]
    if not codes:
        return [], misfits
    by_position = tracks.index_by_position()
    # First as a description of one track, then as a list of positions, one per code. A code without a track is worth nothing.
    row = _find_described_track(description, tracks, by_position)
    if row is not None:
        return [(row, code) for code in codes], misfits
    named, unknown = resolve_positions(_TRACK_WORD.sub("", description), by_position)
    if len(named) == len(codes) and not unknown:
        return list(zip(named, codes, strict=True)), misfits
    return [], [*misfits, *(Misfit(Reason.DANGLING_REFERENCE, f"{code} ({description})" if description else code) for code in codes)]


def _find_described_track(description: str, tracks: TrackList, by_position: Mapping[str, int]) -> int | None:
    # A single has one track, so its code needs no description.
    if len(tracks.rows) == 1:
        return tracks.rows[0]
    row = find_described_position(description, by_position)
    if row is not None:
        return row
    wanted = description.strip().lower()
    titled = [row for row, title in zip(tracks.rows, tracks.titles, strict=True) if wanted and title.strip().lower() == wanted]
    return titled[0] if len(titled) == 1 else None
