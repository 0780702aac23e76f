"""Adapter of audio: an operator's own audio files, and a mapping file that says which recording each one is.

`stage` reads `mapping.csv` of the folder and fingerprints the files that it names in place. Each content is decoded once
(`fingerprint_cache.py`). A file that is missing or cannot be decoded becomes a reject and never ends the build. Files that the mapping does
not name are skipped. Out of scope: which recording a code or a platform id leads to (pipeline/build/fingerprints.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.platforms.audio.fingerprint_cache import AudioCache
from pipeline.dumps.platforms.audio.mapping_file import MAPPING, Entry, read_mapping
from pipeline.dumps.platforms.fingerprints.items import build_fingerprint_keys
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

FILE, FINGERPRINT, LANDMARK = "source_audio_file", "source_fingerprint", "source_landmark"
ROWS_PER_FRAME = 1_000


def stage(dump: Path, out: StagingWriter) -> None:
    """Read the folder `dump`. Raises DumpError when it has no mapping file, or one that cannot be read."""
    entries = list(read_mapping(dump, out))
    with AudioCache(name_cache_file(out.folder)) as cache:
        known = cache.fingerprint(dump, [entry.path for entry in entries], out.report)
        staged = [entry for entry in entries if _is_whole(entry, known.get(entry.path), out)]
        if staged:
            out.write(FILE, _build_file_rows(staged, known))
        # Copies of one file share a fingerprint, which is staged once.
        ids = sorted({known[entry.path].fingerprint_id for entry in staged})
        for start in range(0, len(ids), ROWS_PER_FRAME):
            rows = cache.read_fingerprints(ids[start : start + ROWS_PER_FRAME])
            keyed = rows.with_columns(build_fingerprint_keys(rows["fingerprint_id"], rows["items"]))
            for table, others in ((FINGERPRINT, ["peaks"]), (LANDMARK, ["items", "duration_seconds"])):
                out.count_read(table, rows.height)
                out.write(table, keyed.drop(others))


def name_cache_file(folder: Path) -> Path:
    """Return the path of the cache, beside the staging tables in `folder`, because it outlives them."""
    return folder.with_name(folder.name + ".cache.sqlite")


def _is_whole(entry: Entry, known: AudioCache.Known | None, out: StagingWriter) -> bool:
    if known is None or known.problem is not None:
        reason = Reason.MISSING_FILE if known is None else Reason.UNDECODABLE_AUDIO
        value = None if known is None else known.problem
        out.reject(FILE, reason, source_file=MAPPING, place=entry.place, record_id=entry.path, value=value, excerpt=entry.line)
        return False
    return True


def _build_file_rows(entries: list[Entry], known: dict[str, AudioCache.Known]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "source_file": [MAPPING] * len(entries),
            "place": [entry.place for entry in entries],
            "path": [entry.path for entry in entries],
            "fingerprint_id": [known[entry.path].fingerprint_id for entry in entries],
            "isrc": [entry.isrc for entry in entries],
            "target_platform": [entry.platform for entry in entries],
            "external_id": [entry.external_id for entry in entries],
        },
        schema_overrides=dict.fromkeys(("isrc", "target_platform", "external_id"), pl.String),
    )
