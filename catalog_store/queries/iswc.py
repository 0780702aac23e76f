"""Compositions: ISWCs of a recording, recordings of an ISWC (n:m, contract B9, C10, C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from catalog_store.identifiers import normalise_iswc
from catalog_store.serving.keys import iswc_code, iswc_text
from catalog_store.serving.store import companion

if TYPE_CHECKING:
    from catalog_store.serving.store import ServingStore


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
    """A composition; `total` counts all its recordings, `recordings` holds the first of them, most popular first, ties by id."""

    iswc: str
    title: str
    total: int
    recordings: list[WorkRecording]


class _Named(msgspec.Struct):
    title: str
    isrc: str | None


_NAMED = msgspec.json.Decoder(_Named)


def iswcs(store: ServingStore, recording_id: int) -> list[WorkTitle]:
    """Compositions that a recording performs, by code; empty when none is known or the recording does not exist."""
    found = store.rows(
        "SELECT iswc, title FROM recording_work JOIN work USING (iswc) WHERE recording_id = ? ORDER BY iswc", (recording_id,)
    )
    return [WorkTitle(iswc_text(code), title) for code, title in found]


def work(store: ServingStore, iswc: str, limit: int) -> Work | None:
    """The composition of an ISWC in whatever spelling, with its first `limit` recordings; None when unknown or malformed."""
    bare = normalise_iswc(iswc)
    if bare is None:
        return None
    code = iswc_code(bare)
    found = store.rows("SELECT title, total FROM work WHERE iswc = ?", (code,))
    if not found:
        return None
    ids = [row[0] for row in store.rows("SELECT recording_id FROM work_recording WHERE iswc = ? AND rank < ? ORDER BY rank", (code, limit))]
    bodies = store.bodies(ids)
    title, total = found[0]
    return Work(bare, title, total, [_recording(recording_id, bodies[recording_id]) for recording_id in ids])


def _recording(recording_id: int, body: bytes) -> WorkRecording:
    named = _NAMED.decode(body[: body.index(b"\n")])
    return WorkRecording(recording_id, named.isrc, named.title, companion(body).credit)
