"""Compositions: ISWCs of a recording, recordings of an ISWC (n:m, contract B9, C10, C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from catalog_store.cursors import LARGEST_PLACE, Place
from catalog_store.identifiers import normalise_iswc
from catalog_store.serving.lookup_keys import decode_iswc, encode_iswc
from catalog_store.serving.schema import WORK_ID_BITS
from catalog_store.serving.stored_body import read_companion, restore_tracks

if TYPE_CHECKING:
    from catalog_store.cursors import CursorCodec
    from catalog_store.serving.store import ServingStore

_ALL = Place(0.0, 0.0, 0)
_LARGEST = LARGEST_PLACE._replace(popularity=2 ** (64 - WORK_ID_BITS) - 1, id=2**WORK_ID_BITS - 1)
"""Popularity and id share the 64 bits of a packed recording."""


class WorkTitle(NamedTuple):
    """A composition by code and title."""

    iswc: str
    title: str


class WorkRecording(NamedTuple):
    """A recording of a composition: representative ISRC (or None), title and artists as displayed."""

    id: int
    isrc: str | None
    title: str
    artist: str


class Work(NamedTuple):
    """A composition; `total` counts all its recordings, `recordings` is one page of them, most popular first, ties by id."""

    iswc: str
    title: str
    total: int
    recordings: list[WorkRecording]
    next_cursor: str | None


class _Named(msgspec.Struct):
    title: str
    isrc: str | None


_NAMED = msgspec.json.Decoder(_Named)


def list_iswcs(store: ServingStore, recording_id: int) -> list[WorkTitle]:
    """Return the compositions that a recording performs, by code; empty for none or an unknown recording."""
    body = store.read_track(recording_id)
    if body is None:
        return []
    codes = [int(digits) for digits in read_companion(body).works]
    marks = ",".join("?" * len(codes))
    found = store.fetch_rows(f"SELECT iswc, title FROM work WHERE iswc IN ({marks}) ORDER BY iswc", tuple(codes))
    return [WorkTitle(decode_iswc(code), title) for code, title in found]


def find_work(store: ServingStore, cursors: CursorCodec, iswc: str, limit: int, cursor: str | None) -> Work | None:
    """Return the composition of an ISWC in any spelling, with `limit` of its recordings; None when unknown or malformed.

    InvalidCursorError for a cursor of another composition.
    """
    bare = normalise_iswc(iswc)
    if bare is None:
        return None
    query = ("work", bare)
    place = cursors.decode(query, cursor, _LARGEST) if cursor is not None else _ALL
    found = store.fetch_rows("SELECT title, recordings FROM work WHERE iswc = ?", (encode_iswc(bare),))
    if not found:
        return None
    title, packed = found[0][0], np.frombuffer(found[0][1], dtype="<u8")
    # A packed recording is `unheard` and id in one number, so its order is the order of the answers.
    start = int(np.searchsorted(packed, np.uint64(int(place.popularity) << WORK_ID_BITS | place.id), side="right"))
    page = [divmod(one, 1 << WORK_ID_BITS) for one in packed[start : start + limit].tolist()]
    bodies = store.read_tracks(recording_id for _, recording_id in page)
    shown = dict(zip(bodies, restore_tracks(bodies.values()), strict=True))
    recordings = []
    for _, recording_id in page:
        named = _NAMED.decode(shown[recording_id])
        recordings.append(WorkRecording(recording_id, named.isrc, named.title, read_companion(bodies[recording_id]).credit))
    rest = cursors.encode(query, Place(0.0, *page[-1])) if start + limit < len(packed) else None
    return Work(bare, title, len(packed), recordings, rest)
