"""Changes to a few rows of a large sorted table: found and inserted by row number, without a look at the other rows.

To sort, join or merge the whole table would compare every name there is. Out of scope: which rows change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.linkage.sorted_runs import list_run_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.linkage.sorted_runs import Places


def splice_rows(table: pl.DataFrame, gone: Places, new: pl.DataFrame, before: Places) -> pl.DataFrame:
    """Return `table` without the rows at the places `gone`, and with each row of `new` before the row that was at its place `before`.

    `new` comes in the order of the result. The result is one chunk: gathering rows from many chunks takes five times as long.
    """
    stays = np.ones(table.height, dtype=bool)
    stays[gone] = False
    kept = np.flatnonzero(stays)
    # Numbers of rows are spliced first, and the table is gathered once.
    rows = np.insert(kept, np.searchsorted(kept, before), table.height + np.arange(new.height))
    return pl.concat([table, new.select(table.columns)], rechunk=True)[rows]


def replace_rows(parts: Iterable[pl.DataFrame], key: str, keys: pl.Series, new: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield a table sorted by `key`, given part by part, with `new` instead of all rows that have one of `keys`.

    `new` is sorted and has no other keys.
    """
    wanted = keys.unique().sort()
    for rows in parts:
        if rows.is_empty():
            continue
        near = wanted[wanted.search_sorted(rows[key][0]) : wanted.search_sorted(rows[key][-1], side="right")]
        first, end = (rows[key].search_sorted(near, side=side).to_numpy().astype(np.int64) for side in ("left", "right"))
        # Where the next part begins with the same key, its rows are replaced there as well.
        due = new[: new[key].search_sorted(rows[key][-1], side="right")]
        yield splice_rows(rows, list_run_places(first, end - first), due, rows[key].search_sorted(due[key]).to_numpy())
        new = new[due.height :]
    yield new


def find_insertion_places(table: pl.DataFrame, rows: pl.DataFrame, name: str = "external_id") -> pl.Series:
    """Return the row of `table`, sorted by `platform` and `name`, before which each of `rows` belongs."""
    found = [pl.DataFrame(schema={"_row": pl.UInt32, "place": pl.Int64})]
    for (platform,), here in rows.select("platform", name).with_row_index("_row").partition_by("platform", as_dict=True).items():
        first, end = (int(table["platform"].search_sorted(str(platform), side=side)) for side in ("left", "right"))
        place = table[name].slice(first, end - first).search_sorted(here[name])
        found.append(here.select("_row", place=(place + first).cast(pl.Int64)))
    return pl.concat(found).sort("_row")["place"]


def find_places(table: pl.DataFrame, rows: pl.DataFrame, name: str = "external_id") -> pl.Series:
    """Return the row of `table`, sorted by `platform` and `name`, that equals each of `rows` in both; null where none does.

    This is a binary search for some thousands of names: a join would hash all of the table first.
    """
    if table.is_empty():
        return pl.Series("place", [None], dtype=pl.Int64).new_from_index(0, rows.height)
    place = find_insertion_places(table, rows, name)
    # A name after the last row has no place; the comparison with the last row then fails.
    at = place.clip(upper_bound=table.height - 1)
    same = [table[column].gather(at) == rows[column] for column in ("platform", name)]
    return place.zip_with(same[0] & same[1], pl.Series([None], dtype=pl.Int64))
