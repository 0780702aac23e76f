"""The build of an index of fingerprints in one segment, and the file that lists the segments of an index.

An index grows by one more segment (segment.py) and new columns of ids for existing ones. Nothing else in a segment ever changes, so the
next index may hold its files as hard links. The caller knows which fingerprints are new, gone or another recording's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from audio_recognition.index.layout import BASE, FORMAT, FORMAT_VERSION, INDEX_FILE
from audio_recognition.index.segment import write_segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from audio_recognition.index.batches import FingerprintBatch


def build_index(
    batches: Iterable[FingerprintBatch], folder: Path, *, landmarks: Iterable[FingerprintBatch] = (), partitions: int | None = None
) -> None:
    """Write the new folder `folder`: an index with one segment. Without fingerprints it is an index that answers nothing.

    The files depend only on the fingerprints, not on their order or batches. Needs disk space for the items once more, 4 bytes each, and 6
    bytes a posting. `landmarks`, `partitions`: see `write_segment`.
    """
    write_segment(batches, folder / BASE, landmarks=landmarks, partitions=partitions)
    write_index_file(folder, [BASE])


def write_index_file(folder: Path, segments: Sequence[str]) -> None:
    """List the segments of an index, oldest first. Write it last: a folder without it is not an index."""
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, "segments": list(segments)}
    (folder / INDEX_FILE).write_text(json.dumps(content) + "\n")
