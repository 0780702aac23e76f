"""Source records that the previous staging did not hold, written separately while they are staged.

A night's linkage reads these few thousand instead of all records. Reading all cost it a tenth of its time, mostly for nested credits:

  <staging>/<platform>/new_records.arrow      LINKED_COLUMNS and content_hash of those rows of source_recording, uncompressed

Nothing depends on this shortcut. Linkage finds the records it needs by content hash, and looks for those missing here among all (the live
snapshot may be older than the previous staging). Which records a night links again does not belong here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.frame_texts import copy_texts
from catalog_store.record_keys.content_hash import LINKED_COLUMNS
from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    from pathlib import Path

FILE = "new_records.arrow"
MOST_NEW = 0.05
"""Share of the previous records. With more new ones linkage reads all anyway, and they would fill the memory."""


class NewRecords:
    """Collects the new rows among the `source_recording` of one platform."""

    def __init__(self, before: Path) -> None:
        """Read the hashes of `before`, the platform's previous staging folder. Without a table there nothing is written."""
        self._before = np.sort(_read_hashes(before / "source_recording").drop_nulls().to_numpy())
        self._found: list[pl.DataFrame] = []
        self._rows = 0

    def gather(self, rows: pl.DataFrame) -> None:
        """Keep the new ones among `rows`."""
        # Beyond the limit nothing more is kept: the rows would only fill the memory until `write` drops them.
        if rows.is_empty() or self._rows >= MOST_NEW * len(self._before):
            return
        # Both sides are sorted, so the search stays in the cache and needs no set of all previous hashes.
        hashes = np.sort(rows["content_hash"].to_numpy())
        near = np.minimum(np.searchsorted(self._before, hashes), len(self._before) - 1)
        new = pl.Series(hashes[self._before[near] != hashes]).implode()
        found = rows.select(*LINKED_COLUMNS, "content_hash").filter(pl.col("content_hash").is_in(new))
        # With the texts of all records, the few new ones of 5.5 million took 3 GB.
        self._found.append(copy_texts(found))
        self._rows += self._found[-1].height

    def write(self, folder: Path) -> None:
        """Write them into the platform's new staging folder, unless there are too many."""
        (folder / FILE).unlink(missing_ok=True)
        if self._found and self._rows < MOST_NEW * len(self._before):
            pl.concat(self._found).sort("content_hash").write_ipc(folder / FILE, compression="uncompressed")


def _read_hashes(folder: Path) -> pl.Series:
    """Return the content hashes of a staged table; none when it is missing, torn, or older than the column. Staging continues without."""
    try:
        return pl.read_parquet(list_parts(folder), columns=["content_hash"])["content_hash"]
    except (OSError, pl.exceptions.PolarsError):
        return pl.Series("content_hash", [], dtype=pl.Int64)


def read_new_records(folder: Path) -> pl.DataFrame | None:
    """Read the file of a platform's staging folder; None when there is none."""
    return pl.read_ipc(folder / FILE) if (folder / FILE).is_file() else None
