"""Property tests of the rule for too large differences between two dumps of a platform."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dumps.staging.data_drift import DriftLimits, Loss, ShrunkenDumpError, find_losses, is_short, require_no_losses
from pipeline.dumps.staging.staging_profile import Profile

TABLE, COLUMN = "source_recording", "source_recording.isrcs"
COUNTS = st.integers(0, 10**9)
SHARES = st.floats(0, 1)


def profile(rows: int, values: int) -> Profile:
    return Profile(Counter({TABLE: rows}), Counter({COLUMN: values}))


@given(COUNTS, SHARES)
def test_a_dump_like_the_one_before_never_falls_short(rows: int, filled: float) -> None:
    same = profile(rows, int(rows * filled))
    assert find_losses(same, same, DriftLimits()) == []


@given(COUNTS, st.integers(0, 10**9), SHARES)
def test_a_dump_that_grew_without_losing_values_never_falls_short(rows: int, more: int, filled: float) -> None:
    values = int(rows * filled)
    assert find_losses(profile(rows, values), profile(rows + more, values), DriftLimits()) == []


@given(st.integers(0, 12), st.integers(0, 12))
def test_a_dozen_records_say_nothing(was: int, now: int) -> None:
    assert find_losses(profile(was, was), profile(now, now), DriftLimits()) == []
    assert find_losses(profile(was, was), profile(was, min(was, now)), DriftLimits()) == []


@given(st.integers(40, 10**9))
def test_a_column_or_a_table_that_vanished_always_falls_short(rows: int) -> None:
    assert [loss.what for loss in find_losses(profile(rows, rows), profile(rows, 0), DriftLimits())] == [COLUMN]
    assert [loss.what for loss in find_losses(profile(rows, rows), profile(0, 0), DriftLimits())] == [TABLE]


@given(st.integers(10_000, 10**8), st.floats(0.5, 1.0), st.floats(0, 1))
def test_a_smaller_dump_may_lose_values_in_proportion(rows: int, kept: float, filled: float) -> None:
    before, now = profile(rows, int(rows * filled)), profile(int(rows * kept), int(int(rows * kept) * filled))
    assert [loss.what for loss in find_losses(before, now, DriftLimits(lowest_rows=0.5))] == []


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_limits_that_are_switched_off_let_everything_through(was: int, filled: int, now: int, left: int) -> None:
    before, after = profile(was, min(filled, was)), profile(now, min(left, now))
    assert find_losses(before, after, DriftLimits(lowest_rows=0, largest_loss=1)) == []


@given(COUNTS, COUNTS, COUNTS, SHARES)
def test_shrunken_dump_still_falls_short_with_less(was: int, now: int, less: int, share: float) -> None:
    if is_short(now, was, share):
        assert is_short(min(now, less), was, share)


@pytest.mark.parametrize(("now", "falls"), [(781, False), (650, False), (600, True), (0, True)])
def test_the_message_names_platform_column_counts_and_setting(now: int, falls: bool) -> None:  # noqa: FBT001
    before, after = profile(900, 781), profile(900, now)
    assert bool(find_losses(before, after, DriftLimits())) is falls
    if falls:
        said = rf"streamsvc_b: .*source_recording.isrcs 781 -> {now}.*build once with CATALOG_LARGEST_LOSS=1"
        with pytest.raises(ShrunkenDumpError, match=said):
            require_no_losses("streamsvc_b", before, after, DriftLimits())


def test_nothing_before_is_nothing_to_compare_with() -> None:
    require_no_losses("store_a", None, profile(1, 0), DriftLimits())


def test_the_largest_loss_is_named_first() -> None:
    before = Profile(Counter({TABLE: 1000, "source_genre": 5000}), Counter({COLUMN: 900}))
    now = Profile(Counter({TABLE: 1000, "source_genre": 100}), Counter({COLUMN: 0}))
    found = find_losses(before, now, DriftLimits())
    assert found == [
        Loss("source_genre", 5000, 100, "CATALOG_LOWEST_ROWS=0"),
        Loss(COLUMN, 900, 0, "CATALOG_LARGEST_LOSS=1"),
    ]


def test_values_are_counted_by_the_kind_of_a_column() -> None:
    artists = [[{"artist_id": "1", "name": "A", "role": "primary"}], [{"artist_id": None, "name": "B", "role": "featured"}], []]
    rows = {"title": ["a", "b", "c"], "isrcs": [["X"], [], []], "duration_ms": [1, None, 2], "is_video": [True, False, False]}
    found = Profile()
    schema = {"artists": pl.List(pl.Struct({"artist_id": pl.String, "name": pl.String, "role": pl.String})), "isrcs": pl.List(pl.String)}
    found.add(TABLE, pl.DataFrame(rows | {"artists": artists}, schema_overrides=schema))
    found.add("source_genre", pl.DataFrame({"entity_kind": ["release", "release", "artist"]}))
    said = {name.removeprefix(f"{TABLE}."): count for name, count in found.filled.items() if count}
    assert said == {
        "title": 3, "isrcs": 1, "duration_ms": 2, "is_video": 1, "artists": 2, "artists.artist_id": 1, "artists.name": 2, "artists.role": 2,
        "artists.role=primary": 1, "artists.role=featured": 1, "source_genre.entity_kind": 3, "source_genre.entity_kind=release": 2,
        "source_genre.entity_kind=artist": 1,
    }  # fmt: skip
