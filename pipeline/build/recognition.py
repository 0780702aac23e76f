"""The recognition index of a build: it takes over old segments and puts new fingerprints into a small segment beside them.

A segment (format: audio_recognition/index/layout.py) is built of fingerprint keys, not of recording ids. KEYS_FILE keeps the keys, and
IDS_FILE holds the recording of each key. A whole index depends on the chosen fingerprints alone, not on earlier snapshots. `plan_segments`
holds the rules by which segments are put together again. fingerprints.py chooses the fingerprints.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import write_index_file
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.index.index_errors import IndexInvalidError
from audio_recognition.index.layout import BASE, FORMAT_VERSION, VOID
from audio_recognition.index.segment import write_segment
from catalog_store.array_files import ArrayWriter, map_array
from catalog_store.pending_files import PENDING_SUFFIX
from catalog_store.snapshot import RECOGNITION_FOLDER, SERVING_FOLDER
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table
from pipeline.dumps.platforms.fingerprints.items import flatten_lists
from pipeline.linkage.staged_fingerprints import find_known, iterate_fingerprints, iterate_landmarks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.paths import BuildPaths

MOST_DELTAS = 6
"""Most small segments. Each is searched by itself, so a further one merges them."""
LARGEST_DELTA_SHARE = 0.2
"""Share of the fingerprints that count. With more of them outside the base, or as many dead ones in it, the base is rebuilt."""
KEYS_FILE = "keys.npy"
"""int64: the fingerprint key of each ordinal of a segment, ascending."""
IDS_FILE = "ids.npy"


@dataclass(frozen=True)
class Plan:
    """`kept`: segments taken over; `built`: name and keys (ascending) of the segment to build, if any."""

    kept: tuple[str, ...]
    built: tuple[str, NDArray[np.int64]] | None


def build_recognition(paths: BuildPaths) -> dict[str, int]:
    """Make the index at `paths.recognition` from recording_fingerprint and the index of the live snapshot, and return its counts.

    Without fingerprints the index finds nothing. A build with full linkage reuses no segment.
    """
    # Sorted keys make every membership test below a binary search.
    table = scan_table(TABLES["recording_fingerprint"], paths.table("recording_fingerprint"))
    chosen = table.select("fingerprint_key", "recording_id").sort("fingerprint_key").collect()
    keys, ids = (chosen[name].to_numpy() for name in ("fingerprint_key", "recording_id"))
    segments = {} if paths.relink.exists() else _read_live_segments(paths)
    plan = plan_segments(segments, keys)
    pending = paths.recognition.with_name(paths.recognition.name + PENDING_SUFFIX)
    shutil.rmtree(pending, ignore_errors=True)
    pending.mkdir(parents=True)
    # Only IDS_FILE is written again, so a merge, a split or a withdrawal costs one look-up per fingerprint and no indexing.
    for name in plan.kept:
        _take_over(_find_live_index(paths) / name, pending / name)
        _write_ids(pending / name, segments[name], keys, ids)
    names = list(plan.kept)
    if plan.built is not None:
        name, wanted = plan.built
        write_segment(_iterate_batches(paths, wanted), pending / name, landmarks=_iterate_landmark_batches(paths, wanted))
        # The segment is built of fingerprint keys in place of recording ids; the ids of tonight are written beside them.
        (pending / name / IDS_FILE).rename(pending / name / KEYS_FILE)
        _write_ids(pending / name, map_array(pending / name / KEYS_FILE), keys, ids)
        names.append(name)
    # The index is complete before it takes its place: a killed step leaves the old one or none.
    write_index_file(pending, names)
    shutil.rmtree(paths.recognition, ignore_errors=True)
    pending.rename(paths.recognition)
    indexed = len(plan.built[1]) if plan.built else 0
    return {"fingerprints": len(keys), "indexed_anew": indexed, "segments": len(names), "segments_taken_over": len(plan.kept)}


def count_indexed_fingerprints(folder: Path) -> int:
    """Return the number of fingerprints in the index at `folder`; each segment is opened and checked."""
    return Index.open(folder).recordings


def plan_segments(segments: Mapping[str, NDArray[np.int64]], keys: NDArray[np.int64]) -> Plan:
    """Return the segments to take over and the one to build.

    Args:
        segments: name -> keys of each segment of the live snapshot, the base first.
        keys: of the fingerprints that count now, ascending.
    """
    if BASE not in segments:
        return Plan((), (BASE, keys))
    deltas = [name for name in segments if name != BASE]
    in_base = find_known(keys, segments[BASE])
    in_deltas = np.zeros(len(keys), dtype=np.bool_)
    for name in deltas:
        in_deltas |= find_known(keys, segments[name])
    # Dead keys of the base cost time in every search, keys outside it are in segments that are searched one by one.
    outside = int((~in_base).sum())
    dead = len(segments[BASE]) - int(in_base.sum())
    if max(outside, dead) > LARGEST_DELTA_SHARE * len(keys):
        return Plan((), (BASE, keys))
    new = keys[~in_base & ~in_deltas]
    if not len(new):
        return Plan(tuple(segments), None)
    # `built` holds the new keys alone while there is room for a delta, and all keys outside the base when the deltas become one.
    if len(deltas) < MOST_DELTAS:
        return Plan(tuple(segments), (f"delta-{len(deltas) + 1:04d}", new))
    return Plan((BASE,), ("delta-0001", keys[~in_base]))


def _find_live_index(paths: BuildPaths) -> Path:
    return paths.current.resolve() / SERVING_FOLDER / RECOGNITION_FOLDER


def _read_live_segments(paths: BuildPaths) -> dict[str, NDArray[np.int64]]:
    """Return the keys of each segment of the live snapshot's index; empty without an index that this program can read."""
    folder = _find_live_index(paths)
    # An index of another version of the program, or a damaged one, is not an error: the index is built whole. That includes one of an
    # older version that can still be served: its segments lack what the present version adds.
    try:
        index = Index.open(folder)
        if index.format_version != FORMAT_VERSION:
            return {}
        return {segment.name: map_array(folder / segment.name / KEYS_FILE) for segment in index.segments}
    except (IndexInvalidError, OSError, ValueError):
        return {}


def _take_over(old: Path, new: Path) -> None:
    new.mkdir()
    for file in sorted(old.iterdir()):
        if file.name == IDS_FILE:  # written again each night; a link would change the live snapshot
            continue
        try:
            (new / file.name).hardlink_to(file)
        except OSError:  # the file system has no links
            shutil.copyfile(file, new / file.name)


def _write_ids(segment: Path, segment_keys: NDArray[np.int64], keys: NDArray[np.int64], ids: NDArray[np.int64]) -> None:
    """Write the present recording of each ordinal of the segment."""
    # VOID stands for a fingerprint that no longer counts. Its postings stay until its segment is built again.
    with ArrayWriter(segment / IDS_FILE, np.int64) as written:
        if not len(keys):
            written.append(np.full(len(segment_keys), VOID))
            return
        at = np.minimum(np.searchsorted(keys, segment_keys), len(keys) - 1)
        written.append(np.where(keys[at] == segment_keys, ids[at], VOID))


def _iterate_batches(paths: BuildPaths, wanted: NDArray[np.int64]) -> Iterator[FingerprintBatch]:
    """Yield the fingerprints of these keys (ascending), in the order of staging."""
    for rows in iterate_fingerprints(paths, wanted):
        yield _build_batch(rows)


def _iterate_landmark_batches(paths: BuildPaths, wanted: NDArray[np.int64]) -> Iterator[FingerprintBatch]:
    """Yield the landmarks of these keys (ascending), in the order of staging."""
    for rows in iterate_landmarks(paths, wanted):
        peaks, starts = flatten_lists(rows["peaks"])
        yield FingerprintBatch(rows["fingerprint_key"].to_numpy(), starts, peaks.astype(np.uint32), np.zeros(rows.height, np.uint16))


def _build_batch(rows: pl.DataFrame) -> FingerprintBatch:
    items, starts = flatten_lists(rows["items"])
    seconds = rows["duration_seconds"].clip(upper_bound=np.iinfo(np.uint16).max).cast(pl.UInt16).to_numpy()
    return FingerprintBatch(rows["fingerprint_key"].to_numpy(), starts, items.astype(np.uint32), seconds)
