"""The index of source records: their number and their recording, found by the number that stands for their name.

Records are numbered in the order of recording_member, from 1. So the smaller number is the smaller (platform, external id).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from catalog_store.record_keys.numbers import number_record
from catalog_store.tables.files import count_rows, list_parts
from pipeline.build.recording_ranges import map_slices, run_all
from pipeline.engine.number_index import NumberIndex, count_index_parts

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.build.recording_ranges import SliceJob
    from pipeline.engine.local import Pool
    from pipeline.paths import BuildPaths


def build_recording_index(paths: BuildPaths, folder: Path, pool: Pool) -> NumberIndex:
    """Write the index into `folder`: `record` and `recording_id` by `number_record`."""
    member = paths.table("recording_member")
    index = NumberIndex(folder, ("record", "recording_id"), count_index_parts(count_rows(member)))
    map_slices(pool, partial(_add_members, index), list_parts(member))
    seal_index(index, pool)
    return index


def seal_index(index: NumberIndex, pool: Pool) -> None:
    """Seal all parts of an index that is filled."""
    run_all(pool, index.seal, range(index.parts))
    index.remove_entries()


def _add_members(index: NumberIndex, job: SliceJob) -> None:
    members = job.rows.read_columns("platform", "external_id", "recording_id").with_row_index("record", job.before + 1)
    index.add(job.number, members.select(number_record()).to_series(), members)
