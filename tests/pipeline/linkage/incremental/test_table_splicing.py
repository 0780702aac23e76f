"""Spliced tables equal tables that are sorted again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.linkage.incremental.table_splicing import find_insertion_places, find_places, replace_rows, splice_rows

NAMES = st.sets(st.tuples(st.sampled_from("ace"), st.text("xyzé", max_size=3)), max_size=12)


def table(names: set[tuple[str, str]], value: int, cut: int = 0) -> pl.DataFrame:
    rows = [(*name, value) for name in sorted(names)]
    found = pl.DataFrame(rows, schema={"platform": pl.String, "external_id": pl.String, "value": pl.Int64}, orient="row")
    return pl.concat([found[:cut], found[cut:]], rechunk=False)


@settings(deadline=None, max_examples=60)
@given(NAMES, NAMES, NAMES, st.integers(0, 5))
def test_spliced_table_equals_a_sorted_one(
    held: set[tuple[str, str]], left: set[tuple[str, str]], came: set[tuple[str, str]], cut: int
) -> None:
    before, new = table(held, 1, cut), table(came - held, 2)
    places = find_places(before, table(left, 0))
    assert set(places.drop_nulls()) == {place for place, row in enumerate(before.rows()) if row[:2] in left}
    found = splice_rows(before, places.drop_nulls().to_numpy(), new, find_insertion_places(before, new).to_numpy())
    assert found.rows() == sorted([(*name, 1) for name in held - left] + [(*name, 2) for name in came - held])


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.sampled_from("abcdef")),
    st.sets(st.sampled_from("abcdefg")),
    st.lists(st.sampled_from("abcdefg")),
    st.sets(st.integers(0, 9)),
)
def test_all_rows_of_a_key_are_replaced_wherever_parts_are_cut(held: list[str], keys: set[str], came: list[str], cuts: set[int]) -> None:
    before = pl.DataFrame({"isrc": sorted(held), "value": np.arange(len(held))}, schema={"isrc": pl.String, "value": pl.Int64})
    new = pl.DataFrame({"isrc": sorted(set(came) & keys)}, schema={"isrc": pl.String}).with_columns(value=pl.lit(-1, pl.Int64))
    bounds = [0, *sorted(cuts), max(len(held), 10)]
    parts = [before[start:end] for start, end in pairwise(bounds)]
    found = pl.concat(replace_rows(parts, "isrc", pl.Series(sorted(keys), dtype=pl.String), new))
    assert found.rows() == sorted([row for row in before.rows() if row[0] not in keys] + new.rows())
