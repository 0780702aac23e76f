from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables.provenance import DURATION_REASONS
from pipeline.build.durations import DURATION, DURATION_OF_PLATFORM

if TYPE_CHECKING:
    import random

Heard = tuple[str, bool, int | None]
"""Platform, is a video, milliseconds."""

MEMBER = {"recording_id": pl.Int64, "platform": pl.String, "is_video": pl.Boolean, "duration_ms": pl.Int64}
A, B, C, STORE, CATALOG_A, CATALOG_B = CATALOG_PLATFORMS


def durations(*recordings: list[Heard]) -> list[tuple[float, int, str]]:
    """Return the ms, agreed and reason of each recording that has a duration."""
    with duckdb.connect() as connection:
        rows = [(n, *row) for n, said in enumerate(recordings) for row in said]
        connection.register("member", pl.DataFrame(rows, schema=MEMBER, orient="row").to_arrow())
        connection.execute(f"CREATE TABLE duration_of_platform AS {DURATION_OF_PLATFORM}")
        return connection.sql(f"SELECT ms, agreed, reason FROM ({DURATION}) ORDER BY recording_id").fetchall()


def heard(**milliseconds: int | None) -> list[Heard]:
    return [(platform, False, ms) for platform, ms in milliseconds.items()]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (heard(streamsvc_a=200_000), (200_000, 1, "only_platform")),
        (heard(streamsvc_a=200_000, store_a=201_001), (200_500.5, 2, "median")),
        (heard(streamsvc_a=200_000, store_a=201_000, catalog_b=203_000), (201_000, 3, "median")),
        # A hidden track on one platform moves nobody.
        (heard(streamsvc_a=200_000, store_a=201_000, catalog_b=290_000), (200_500, 2, "majority")),
        (heard(streamsvc_a=290_000, store_a=201_000, catalog_b=200_000), (200_500, 2, "majority")),
        # Two that contradict each other are never averaged: the chain decides.
        (heard(catalog_a=230_000, streamsvc_c=200_000), (200_000, 1, "priority")),
        (heard(catalog_a=230_000, streamsvc_c=200_000, catalog_b=None), (200_000, 1, "priority")),
        (heard(catalog_a=230_000, streamsvc_c=200_000, catalog_b=230_000, store_a=200_500), (200_250, 2, "majority")),
    ],
)
def test_platforms_vote_and_outliers_are_left_out(rows: list[Heard], expected: tuple[float, int, str]) -> None:
    assert durations(rows) == [expected]


def test_a_platform_counts_once_however_many_records_it_has() -> None:
    assert durations([(A, False, 200_000)] * 9 + [(B, False, 202_000), (C, False, 202_000)]) == [(202_000, 3, "median")]


def test_between_single_platforms_more_records_count_before_the_chain() -> None:
    assert durations([(A, False, 200_000), (STORE, False, 300_000), (STORE, False, 300_000)]) == [(300_000, 1, "priority")]


def test_videos_count_only_where_nothing_else_does() -> None:
    assert durations([(CATALOG_B, True, 260_000), (A, False, 200_000)], [(CATALOG_B, True, 260_000), (CATALOG_B, False, None)]) == [
        (200_000, 1, "only_platform"),
        (260_000, 1, "only_platform"),
    ]


def test_recording_without_durations_has_none() -> None:
    assert durations(heard(catalog_a=None)) == []


ROW = st.tuples(st.sampled_from(CATALOG_PLATFORMS), st.booleans(), st.integers(1, 60).map(lambda n: n * 1500))
RECORDINGS = st.lists(st.lists(ROW, min_size=1, max_size=12), min_size=1, max_size=60)


@settings(max_examples=8, deadline=None)
@given(RECORDINGS, st.randoms(use_true_random=False))
def test_order_of_records_does_not_change_the_duration(recordings: list[list[Heard]], chance: random.Random) -> None:
    found = durations(*recordings)
    assert durations(*(chance.sample(rows, len(rows)) for rows in recordings)) == found
    for rows, (ms, agreed, reason) in zip(recordings, found, strict=True):
        counted = [row for row in rows if not row[1]] or rows
        values = [value for _, _, value in counted if value is not None]
        assert reason in DURATION_REASONS
        assert min(values) <= ms <= max(values)
        assert agreed <= len({platform for platform, _, _ in counted})
