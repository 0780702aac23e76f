"""Builds an index of fingerprints whole, and carries one on: what has changed becomes a small segment of its own.

The files depend on the fingerprints alone, not on the order or the batches in which they come. An index is complete when INDEX_FILE
stands in its folder; it is written last.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.index import Index
from audio_recognition.index.layout import BASE, FORMAT, FORMAT_VERSION, INDEX_FILE, VOID
from audio_recognition.index.segment import write_segment
from catalog_store.search.arrays import ArrayWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from audio_recognition.index.batches import FingerprintBatch


def build_index(batches: Iterable[FingerprintBatch], folder: Path, *, partitions: int | None = None) -> None:
    """Write the new folder `folder`: an index with one segment. Without any fingerprint it is an index that answers nothing.

    Needs room on disk for the items once more, 4 bytes each, and 8 bytes a posting. `partitions`: see `write_segment`.
    """
    write_segment(batches, folder / BASE, partitions=partitions)
    _write_index_file(folder, [BASE])


def extend_index(
    previous: Path,
    folder: Path,
    batches: Iterable[FingerprintBatch],
    *,
    removed: NDArray[np.int64] | None = None,
    redirects: Mapping[int, int] | None = None,
) -> None:
    """Write the new folder `folder`: the index `previous` (which stays as it is), carried on.

    First `redirects` (recording id -> the one it was merged into, followed to the end) rename what is there; then the fingerprints of the
    recordings in `batches` replace all that these recordings had, and those of `removed` go. Files that do not change are hard links, so
    both folders must be on one file system. IndexInvalidError when `previous` is no index.
    """
    opened = Index.open(previous)
    folder.mkdir(parents=True)
    name = f"delta-{len(opened.segments):04d}"
    replaced = write_segment(batches, folder / name)
    if not len(replaced):
        _remove(folder / name)
    gone = np.union1d(replaced, np.zeros(0, np.int64) if removed is None else removed)
    names = [segment.name for segment in opened.segments]
    for segment in opened.segments:
        _carry(previous / segment.name, folder / segment.name, segment.ids, carried_ids(segment.ids, gone, redirects or {}))
    _write_index_file(folder, [*names, name] if len(replaced) else names)


def carried_ids(ids: NDArray[np.int64], gone: NDArray[np.int64], redirects: Mapping[int, int]) -> NDArray[np.int64]:
    """The ids of a segment after merges and without those that are gone."""
    carried = ids.copy()
    if redirects:
        old = np.array(sorted(redirects), dtype=np.int64)
        new = np.array([_end(one, redirects) for one in old.tolist()], dtype=np.int64)
        at = np.minimum(np.searchsorted(old, carried), len(old) - 1)
        carried = np.where(old[at] == carried, new[at], carried)
    carried[np.isin(carried, gone)] = VOID
    return carried


def _end(recording_id: int, redirects: Mapping[int, int]) -> int:
    seen = {recording_id}
    while (recording_id := redirects.get(recording_id, recording_id)) not in seen:
        seen.add(recording_id)
    return recording_id


def _carry(old: Path, new: Path, old_ids: NDArray[np.int64], ids: NDArray[np.int64]) -> None:
    new.mkdir()
    for file in sorted(old.iterdir()):
        if file.name != "ids.npy" or np.array_equal(old_ids, ids):
            os.link(file, new / file.name)
    if not np.array_equal(old_ids, ids):
        with ArrayWriter(new / "ids.npy", np.int64) as written:
            written.append(ids)


def _remove(segment: Path) -> None:
    for file in segment.iterdir():
        file.unlink()
    segment.rmdir()


def _write_index_file(folder: Path, segments: Sequence[str]) -> None:
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, "segments": list(segments)}
    (folder / INDEX_FILE).write_text(json.dumps(content) + "\n")
