from __future__ import annotations

from datetime import date

import duckdb
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.lists.dates import (
    LEAST_HEARD,
    compute_latest_stamp,
    compute_year_stamps,
    encode_stamp_expr,
    encode_unheard_expr,
    render_unheard_sql,
)

CONNECTION = duckdb.connect()
NEWEST_FIRST = [
    ("2004-06-01", "day"),
    ("2004-05-31", "day"),
    ("2004-05-01", "day"),
    ("2004-05-01", "month"),
    ("2004-04-30", "day"),
    ("2004-01-01", "day"),
    ("2004-01-01", "month"),
    ("2004-01-01", "year"),
    ("2003-12-31", "day"),
    (None, None),
]


def stamps(dates: list[tuple[str | None, str | None]]) -> list[int]:
    frame = pl.DataFrame(dates, schema={"release_date": pl.String, "release_date_precision": pl.String}, orient="row")
    return frame.with_columns(pl.col("release_date").str.to_date()).select(encode_stamp_expr()).to_series().to_list()


def test_partial_date_sorts_after_full_dates_of_its_period_and_no_date_last() -> None:
    found = stamps(NEWEST_FIRST)
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == len(found)
    assert found[-1] == 0


def test_a_year_holds_all_its_dates_and_no_others() -> None:
    first, last = compute_year_stamps(2004)
    inside = [first <= stamp <= last for stamp in stamps(NEWEST_FIRST)]
    assert inside == [day is not None and day.startswith("2004") for day, _ in NEWEST_FIRST]


def test_a_day_ends_with_its_full_date() -> None:
    today = compute_latest_stamp(date(2004, 5, 1))
    assert [stamp <= today for stamp in stamps(NEWEST_FIRST)] == [False, False, True, True, True, True, True, True, True, True]


@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0, 1e-7])), min_size=1, max_size=30))
@settings(max_examples=30)
def test_unheard_is_equal_in_polars_and_duckdb(popularities: list[float]) -> None:
    turned = pl.DataFrame({"p": popularities}).select(encode_unheard_expr("p")).to_series().to_list()
    rows = CONNECTION.execute(f"SELECT {render_unheard_sql('p')} FROM (SELECT unnest(?::DOUBLE[]) AS p)", [popularities]).fetchall()
    assert turned == [row[0] for row in rows]
    assert all(0 <= one <= LEAST_HEARD for one in turned)
    by_popularity = [one for _, one in sorted(zip(popularities, turned, strict=True))]
    assert by_popularity == sorted(turned, reverse=True)
