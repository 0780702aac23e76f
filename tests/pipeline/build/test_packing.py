from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.build.packing import CRITERIA_BITS, RECORD_BITS, render_criteria_sql, render_packed_sql, render_record_sql

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(0, 2**RECORD_BITS - 1)), min_size=1, max_size=30)


@settings(max_examples=20, deadline=None)
@given(ROWS)
def test_packed_values_sort_by_criteria_and_return_the_record(rows: list[tuple[int, int, int]]) -> None:
    packed = render_packed_sql(("a", 1), ("b", 4))
    values = ", ".join(f"({a}::BIGINT, {b}::BIGINT, {record}::BIGINT)" for a, b, record in rows)
    best = f"(SELECT min({packed}) AS best FROM (VALUES {values}) t(a, b, record))"
    found = duckdb.sql(f"SELECT {render_criteria_sql('best')} AS criteria, {render_record_sql('best')} AS record FROM {best}").fetchall()
    a, b, record = min((a, min(b, 15), record) for a, b, record in rows)
    assert found == [(a << 4 | b, record)]


def test_widest_packed_value_is_positive() -> None:
    packed = render_packed_sql(("1", 1), (str(2**40), CRITERIA_BITS - 1), record=str(2**RECORD_BITS - 1))
    assert duckdb.sql(f"SELECT {packed}").fetchall() == [(2**63 - 1,)]


def test_too_wide_criteria_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 29 bits"):
        render_packed_sql(("a", CRITERIA_BITS), ("b", 1))
