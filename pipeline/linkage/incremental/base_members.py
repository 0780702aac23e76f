"""Table `recording_member` of the base, a row for each record of each platform: searched and spliced a part at a time.

No call holds more than one part of it, besides the rows that it returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts
from pipeline.linkage.id_registry import SOURCE_KEY
from pipeline.linkage.id_rules import KEY_SCHEMA
from pipeline.linkage.incremental.table_splicing import find_insertion_places, find_places, splice_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = ["platform", "external_id"]
_MEMBER = TABLES["recording_member"]


class BaseMembers:
    """The table, whose platforms each begin a part."""

    def __init__(self, folder: Path) -> None:
        """Find the parts of each platform. ValueError when a part holds several."""
        self._parts: dict[str, list[Path]] = {platform: [] for platform in sorted(CATALOG_PLATFORMS)}
        for part in list_parts(folder):
            rows = pl.read_parquet(part, columns=["platform"])["platform"]
            platforms = sorted({*rows.head(1), *rows.tail(1)})
            if len(platforms) > 1:
                named = " and ".join(platforms)
                raise ValueError(f"{part} holds records of {named}, but a part has one platform: run `python -m pipeline build --relink`")
            for platform in platforms:
                self._parts[platform].append(part)

    def read_ids(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return those of `records` (platform, external_id, any more columns) that the table has, with their recording_id, in any order."""
        found = [records.clear().with_columns(recording_id=pl.lit(None, dtype=pl.Int64))]
        for (platform,), sought in records.partition_by("platform", as_dict=True).items():
            for rows, is_near in self._read_ranges(str(platform)):
                near = sought.filter(is_near)
                ids = rows["recording_id"].gather(find_places(rows, near))
                found.append(near.with_columns(ids).drop_nulls("recording_id"))
        return pl.concat(found)

    def read_keys(self, recording_ids: pl.Series) -> pl.DataFrame:
        """Return the records of these recordings, in order of the table: source_key, entity_id."""
        # One byte for each id up to the largest: a set of numbers would be hashed again for every part.
        ids = recording_ids.to_numpy()
        is_wanted = np.zeros(np.max(ids, initial=0) + 2, dtype=np.bool_)
        is_wanted[ids] = True
        found = [pl.DataFrame(schema=KEY_SCHEMA)]
        for part in (part for parts in self._parts.values() for part in parts):
            rows = pl.read_parquet(part, columns=_MEMBER.column_names)
            # Larger ids take the last place, which no id has.
            rows = rows.filter(is_wanted.take(rows["recording_id"].to_numpy(), mode="clip"))
            # Rows that a filter left still hold all texts of their part, the keys only their own: half a gigabyte of 28 million records.
            found.append(rows.select(source_key=SOURCE_KEY, entity_id="recording_id"))
        return pl.concat(found)

    def splice(self, gone: pl.DataFrame, changed: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield the table with changes, in its order: some rows at a time, with their platform.

        Args:
            gone: platform, external_id of records to leave out.
            changed: rows of the table, of records that it has or not.
        """
        for platform in self._parts:
            here, left = (frame.filter(pl.col("platform") == platform) for frame in (changed, gone))
            for rows, is_near in self._read_ranges(platform):
                yield platform, _splice_members(rows, left.filter(is_near), here.filter(is_near))

    def _read_ranges(self, platform: str) -> Iterator[tuple[pl.DataFrame, pl.Expr]]:
        """Yield the rows of each part, or none once, with the condition for external ids that belong there.

        A part takes the ids behind the part before up to its own last row, the last part all that follow.
        """
        is_behind = pl.lit(value=True)
        for part in self._parts[platform][:-1]:
            rows = pl.read_parquet(part, columns=_MEMBER.column_names)
            end = rows["external_id"][-1]
            yield rows, is_behind & (pl.col("external_id") <= end)
            is_behind = pl.col("external_id") > end
        last = self._parts[platform][-1:]
        yield pl.read_parquet(last[0], columns=_MEMBER.column_names) if last else _MEMBER.build_empty(), is_behind


def _splice_members(before: pl.DataFrame, gone: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return `before` without the records that are gone and with these rows, in its order."""
    places = find_places(before, rows)
    ids = before["recording_id"].to_numpy(writable=True)
    ids[places.drop_nulls().to_numpy()] = rows.filter(places.is_not_null())["recording_id"].to_numpy()
    before = before.with_columns(recording_id=pl.Series(ids))
    new = rows.filter(places.is_null()).sort(SOURCE)
    left = find_places(before, gone).drop_nulls().to_numpy()
    return splice_rows(before, left, new, find_insertion_places(before, new).to_numpy())
