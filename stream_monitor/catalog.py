"""The part of the live catalog that monitoring needs: fingerprints and names of recordings.

Follows the published snapshot as the servers do. Out of scope: searching for a recording (the matcher process does).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from account_store.streams.airings import PlayedTrack
from audio_recognition.index.fingerprint_index import Index
from catalog_store.errors import NoSnapshotError
from catalog_store.live_snapshot import LiveSnapshot
from catalog_store.reader import open_catalog
from catalog_store.snapshot import RECOGNITION_FOLDER, SERVING_FOLDER
from stream_monitor.references import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from audio_recognition.index.fingerprint_index import Segment


class OpenCatalog:
    """One open snapshot."""

    def __init__(self, snapshot: Path) -> None:
        """Open the snapshot in the folder `snapshot`."""
        self._catalog = open_catalog(snapshot)
        self._index: Index | None = Index.open(snapshot / SERVING_FOLDER / RECOGNITION_FOLDER)

    def close(self) -> None:
        """Close files and memory maps."""
        self._index = None
        self._catalog.close()

    def find_references(self, recording_id: int) -> list[Reference]:
        """Return the recording's fingerprints; an empty list when the index has none."""
        return read_references(self._index, recording_id) if self._index else []

    def find_track(self, recording_id: int) -> PlayedTrack | None:
        """Return the recording's names; None when the catalog has no such recording."""
        current = self._catalog.resolve_id(recording_id)
        body = None if current is None else self._catalog.read_track_body(current)
        return None if body is None else _read_track(json.loads(body))


class LiveCatalog(LiveSnapshot[OpenCatalog]):
    """The open catalog; NoSnapshotError while nothing is published."""

    def __init__(self, root: Path, *, look_seconds: float = 1.0) -> None:
        """Follow `root`, a catalog root or a snapshot's folder. Only sizes are checked: matcher and servers verify contents."""
        super().__init__(root, OpenCatalog, what="catalog of the monitor", contents=False, absent=_build_absence, look_seconds=look_seconds)

    def find_references(self, recording_id: int) -> list[Reference]:
        """Call the method of the live `OpenCatalog`."""
        with self.hold() as catalog:
            return catalog.find_references(recording_id)

    def find_track(self, recording_id: int) -> PlayedTrack | None:
        """Call the method of the live `OpenCatalog`."""
        with self.hold() as catalog:
            return catalog.find_track(recording_id)


def read_references(index: Index, recording_id: int) -> list[Reference]:
    """Return all fingerprints of a recording in an index."""
    return [_read_reference(segment, int(at)) for segment in index.segments for at in np.flatnonzero(segment.ids == recording_id)]


def _build_absence() -> NoSnapshotError:
    return NoSnapshotError("no catalog is published yet")


def _read_reference(segment: Segment, at: int) -> Reference:
    start, end = int(segment.store_starts[at]), int(segment.store_starts[at + 1])
    # A copy: a view would keep the snapshot mapped for as long as the track plays.
    stored = segment.store[start:end].copy()
    reference = Reference(int(segment.ids[at]), stored, float(segment.seconds[at]))
    # The recorded length may be shorter than the sound itself. A play would then end before its fingerprint does.
    return (
        reference
        if reference.seconds >= reference.covered_seconds
        else Reference(reference.recording_id, stored, reference.covered_seconds)
    )


def _read_track(body: dict[str, Any]) -> PlayedTrack:
    names = [artist["name"] for artist in body["artists"] if artist["is_primary"]] or [artist["name"] for artist in body["artists"]]
    return PlayedTrack(body["id"], body["title"], ", ".join(names), body["isrc"], body["duration"])
