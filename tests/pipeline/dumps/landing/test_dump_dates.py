"""Tests of the choice of the newest files of each series in a delivery."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dumps.landing.dump_dates import find_superseded

OLD, NEW = "Song/date=2026-10-01/part-1.parquet", "Song/date=2026-11-01/part-0.parquet"


@pytest.mark.parametrize(
    ("names", "older"),
    [
        ([OLD, NEW], [OLD]),
        ([NEW, "Album/date=2026-10-01/part-0.parquet"], []),
        (["itunes20261001/song", "itunes20261101/song", "match20261001/song_match"], ["itunes20261001/song"]),
        (["2026-10-01/a", "2026-11-01/a", "README.txt"], ["2026-10-01/a"]),
        (["x/tracks_20261001_3.csv", "x/tracks_20261101_1.csv", "x/albums_20261001.csv"], ["x/tracks_20261001_3.csv"]),
        (["track_19991231.json", "track_19980101.json", "plain.json"], []),
    ],
)
def test_the_newest_of_each_series_counts(names: list[str], older: list[str]) -> None:
    assert find_superseded(names) == older


@given(st.lists(st.integers(0, 9_000), min_size=1, unique=True))
def test_exactly_one_day_of_a_series_is_left(days: list[int]) -> None:
    names = [f"feed_{date(2000, 1, 1) + timedelta(days=day)}/part" for day in days]
    assert set(names) - set(find_superseded(names)) == {max(names)}
