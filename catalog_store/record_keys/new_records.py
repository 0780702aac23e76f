"""Source records that the staging before this one did not hold, laid aside as they are staged.

A night's linkage reads these some thousand instead of all, which cost it a tenth of its time, most of that for their nested credits:

    <staging>/<platform>/new_records.arrow      LINKED_COLUMNS and content_hash of those rows of source_recording, uncompressed

A shortcut that nothing rests on: which records linkage wants it finds out by content hash, and what does not stand here it looks for among
all (the live snapshot may be older than the staging before this one). What must not live here: which records a night links again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.record_keys.content_hash import LINKED_COLUMNS
from catalog_store.tables.files import parts

if TYPE_CHECKING:
    from pathlib import Path

FILE = "new_records.arrow"
MOST_NEW = 0.05
"""Share of the records held before; with more, linkage reads all of them anyway (and they would fill the memory)."""


class NewRecords:
    """Gathers the new ones among the rows of `source_recording` of one platform."""

    def __init__(self, before: Path) -> None:
        """`before`: the platform's staging folder as it was; without a table there nothing is laid aside."""
        self._before = np.sort(_hashes(before / "source_recording").drop_nulls().to_numpy())
        self._found: list[pl.DataFrame] = []
        self._rows = 0

    def gather(self, rows: pl.DataFrame) -> None:
        """Keep those of some rows that are new."""
        if rows.is_empty() or self._rows >= MOST_NEW * len(self._before):
            return
        # Both sides in order: a search that stays in the cache, without a set of all that stood before.
        hashes = np.sort(rows["content_hash"].to_numpy())
        near = np.minimum(np.searchsorted(self._before, hashes), len(self._before) - 1)
        new = pl.Series(hashes[self._before[near] != hashes]).implode()
        self._found.append(rows.select(*LINKED_COLUMNS, "content_hash").filter(pl.col("content_hash").is_in(new)))
        self._rows += self._found[-1].height

    def write(self, folder: Path) -> None:
        """Lay them down in the platform's new staging folder; nothing, when they are too many."""
        (folder / FILE).unlink(missing_ok=True)
        if self._found and self._rows < MOST_NEW * len(self._before):
            pl.concat(self._found).sort("content_hash").write_ipc(folder / FILE, compression="uncompressed")


def _hashes(folder: Path) -> pl.Series:
    """The content hashes of a staged table; none when it is not there, torn, or of before there were any: staging goes on without it."""
    try:
        return pl.read_parquet(parts(folder), columns=["content_hash"])["content_hash"]
    except (OSError, pl.exceptions.PolarsError):
        return pl.Series("content_hash", [], dtype=pl.Int64)


def new_records(folder: Path) -> pl.DataFrame | None:
    """What was laid down in a platform's staging folder; None when nothing was."""
    return pl.read_ipc(folder / FILE) if (folder / FILE).is_file() else None
