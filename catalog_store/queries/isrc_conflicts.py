"""ISRCs that source records of two recordings claimed, from the Parquet tables of a snapshot, in order of the code.

A page reads the row groups that may hold its codes. No deadline stops it, as in evidence.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.cursors import Place
from catalog_store.queries.pages import check_limit
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.cursors import CursorCodec

_CONFLICT = TABLES["isrc_conflict"]
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PREFIX_CHARACTERS = 5
"""Country and registrant of a code, letters and digits. Seven digits follow."""


class IsrcConflict(NamedTuple):
    """A row of `isrc_conflict`: `owner_recording_id` kept the code that records of `recording_id` claimed."""

    isrc: str
    recording_id: int
    owner_recording_id: int
    platforms: list[str]
    record_count: int
    reason: str


class ConflictPage(NamedTuple):
    """`conflicts` in order; `next_cursor` is None exactly at the end."""

    conflicts: list[IsrcConflict]
    next_cursor: str | None


def list_isrc_conflicts(tables: Path, cursors: CursorCodec, *, isrc: str | None, limit: int, cursor: str | None) -> ConflictPage:
    """Return one page of all conflicts, or of those of one bare ISRC; `tables` is the tables folder of a snapshot.

    InvalidQueryError, InvalidCursorError.
    """
    check_limit(limit)
    query = ("isrc_conflicts", isrc or "")
    rows = scan_table(_CONFLICT, tables / _CONFLICT.name)
    if isrc is not None:
        rows = rows.filter(pl.col("isrc") == isrc)
    if cursor is not None:
        place = cursors.decode(query, cursor)
        code = _read_code(place)
        is_behind = (pl.col("isrc") > code) | ((pl.col("isrc") == code) & (pl.col("recording_id") > place.id))
        # The first condition alone lets the reader skip row groups.
        rows = rows.filter(pl.col("isrc") >= code, is_behind)
    # One row more than the page shows whether a next page exists.
    found = [IsrcConflict(**row) for row in rows.head(limit + 1).collect().iter_rows(named=True)]
    page = found[:limit]
    return ConflictPage(page, cursors.encode(query, _build_place(page[-1])) if len(found) > limit else None)


def _build_place(conflict: IsrcConflict) -> Place:
    """Return the place of a row in a cursor, which holds numbers: the two halves of the code, the recording."""
    prefix, number = conflict.isrc[:_PREFIX_CHARACTERS], conflict.isrc[_PREFIX_CHARACTERS:]
    return Place(int(prefix, len(_DIGITS)), int(number), conflict.recording_id)


def _read_code(place: Place) -> str:
    prefix, rest = "", int(place.score)
    for _ in range(_PREFIX_CHARACTERS):
        rest, digit = divmod(rest, len(_DIGITS))
        prefix = _DIGITS[digit] + prefix
    return f"{prefix}{int(place.popularity):07d}"
