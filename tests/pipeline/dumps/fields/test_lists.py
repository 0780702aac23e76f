"""Lists put together are those of Polars."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.lists import concat_lists, list_entries

NAMES = st.none() | st.text(max_size=3)
PEOPLE = st.lists(st.fixed_dictionaries({"artist_id": NAMES, "name": NAMES, "role": NAMES}), max_size=3)


@given(st.lists(st.tuples(PEOPLE, PEOPLE), max_size=8), st.integers(0, 3))
def test_lists_are_concatenated_row_by_row(rows: list[tuple[list[object], list[object]]], start: int) -> None:
    frame = pl.DataFrame(rows, schema={"one": CREDITS, "other": CREDITS}, orient="row")[start:]
    found = frame.select(concat_lists(pl.col("one"), pl.col("other"), CREDITS)).to_series()
    assert found.dtype == CREDITS
    assert found.to_list() == [one + other for one, other in rows[start:]]


def test_entries_become_a_list_with_their_nulls() -> None:
    frame = pl.DataFrame({"name": ["A", None], "other": ["B", "C"]})
    people = [pl.struct(artist_id=pl.lit("1"), name=name, role=pl.lit(None, dtype=pl.String)) for name in ("name", "other")]
    found = frame.select(list_entries(*people).cast(CREDITS)).to_series().to_list()
    assert [[entry["name"] for entry in entries] for entries in found] == [["A", "B"], [None, "C"]]
