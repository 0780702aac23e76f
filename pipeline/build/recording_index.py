"""The index of source records: their number and their recording, found by the number that stands for their name.

Records are numbered in the order of recording_member, from 1. So the smaller number is the smaller (platform, external id). The first stage
that needs the index writes it, and the stages after it use it again.
"""

from __future__ import annotations

import shutil
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

from catalog_store.folder_listing import list_folder
from catalog_store.record_keys.numbers import number_record
from catalog_store.tables.files import count_rows, hash_part_end, list_parts
from pipeline.build.recording_ranges import cut_jobs
from pipeline.build.step_fingerprint import hash_program, read_boot_id
from pipeline.engine.number_index import NumberIndex, count_index_parts
from pipeline.engine.pool import map_ordered

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.build.recording_ranges import SliceJob
    from pipeline.engine.pool import Pool
    from pipeline.paths import BuildPaths


def open_recording_index(paths: BuildPaths, spill: Path, pool: Pool) -> NumberIndex:
    """Return the index, `record` and `recording_id` by `number_record`; writes it below `spill` first, unless a stage before has."""
    member = paths.table("recording_member")
    parts = count_index_parts(count_rows(member))
    # Files that were written before a loss of power may have their size and not their content, so the boot counts, too.
    contents = " ".join([hash_program(), read_boot_id(), str(parts), *map(hash_part_end, list_parts(member))])
    held = paths.root / "work" / "carried" / "recording_index"
    folder = held / blake2b(contents.encode(), digest_size=16).hexdigest()
    index = NumberIndex(folder, _COLUMNS, parts)
    # A damaged index would give records to other recordings, in silence. To read 24 bytes a record takes a second per 40 million records.
    if index.is_whole():
        return index
    made = NumberIndex(spill / folder.name, _COLUMNS, parts)
    # Without checkpoints, because the folder moves: an index that a mark calls finished and that is gone would lose records in silence.
    shutil.rmtree(made.folder, ignore_errors=True)
    for _ in map_ordered(partial(_add_members, made), cut_jobs(list_parts(member)), pool=pool):
        pass
    for _ in map_ordered(made.seal, range(parts), pool=pool):
        pass
    made.remove_entries()
    made.keep_checksums()
    held.mkdir(parents=True, exist_ok=True)
    for stale in list_folder(held, "*"):
        shutil.rmtree(stale, ignore_errors=True)
    try:
        made.folder.rename(folder)
    except OSError:
        # A parallel stage was faster.
        return made
    return index


_COLUMNS = ("record", "recording_id")


def _add_members(index: NumberIndex, job: SliceJob) -> None:
    members = job.rows.read_columns("platform", "external_id", "recording_id").with_row_index("record", job.before + 1)
    index.add(job.number, members.select(number_record()).to_series(), members)
