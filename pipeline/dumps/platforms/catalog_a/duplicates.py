"""Records that occur twice in one file. The first one is kept, however far apart they are."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.dumps.platforms.catalog_a.batch import Batch
from pipeline.dumps.staging.reject_reasons import Reason


class SeenIds:
    """Ids of one file so far: a byte per possible id, 40 MB for all releases, however long the file."""

    def __init__(self) -> None:
        """Begin without ids."""
        self._seen = np.zeros(1 << 16, dtype=np.bool_)

    def find_repeated(self, ids: pl.Series) -> pl.Series:
        """Add `ids` (text of at most 9 digits, distinct). Return a mask of those that were seen before."""
        numbers = ids.cast(pl.Int64).to_numpy()
        if numbers.size and numbers.max() >= self._seen.size:
            grown = np.zeros(2 * int(numbers.max()), dtype=np.bool_)
            grown[: self._seen.size] = self._seen
            self._seen = grown
        mask = self._seen[numbers]
        self._seen[numbers] = True
        return pl.Series(mask)


def drop_repeated(batch: Batch, entity: str, seen: SeenIds, keys: dict[str, str]) -> Batch:
    """Return `batch` without rows of records seen in earlier blocks. `keys` names the id column of each staging table."""
    repeated = batch.records.filter(seen.find_repeated(batch.records["record_id"]))
    if repeated.is_empty():
        return batch
    ids = repeated["record_id"].implode()
    kept = Batch(batch.source_file, read=dict(batch.read))
    # Rejects of tracks carry `<release id>-<n>`: they go with their release.
    is_repeated = pl.col("record_id").str.extract(r"^(\d+)").is_in(ids).fill_null(value=False)
    kept.rejects = [frame.filter(~is_repeated) for frame in batch.rejects]
    for name, frame in batch.frames.items():
        kept.frames[name] = frame.filter(~pl.col(keys[name]).is_in(ids))
        if name != entity and name in batch.read:
            gone = sum(
                frame.filter(is_repeated & (pl.col("entity") == name) & (pl.col("severity") == "row")).height for frame in batch.rejects
            )
            # The repeated release counts as one read record. Its tracks were counted by the block and must not stay in the books.
            kept.read[name] -= frame.height - kept.frames[name].height + gone
    kept.reject_rows(entity, Reason.DUPLICATE_ID, repeated, "record_id", pl.lit(None, dtype=pl.String))
    return kept
