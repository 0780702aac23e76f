"""Tests that rows of text built from columns equal those of a loop over the airings."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from account_store.streams.report import ReportedStream
from catalog_api.airplay.report_formats import write_csv, write_parquet
from catalog_api.airplay.stream_sheets import Sheet, find_distinct, join_rows
from catalog_api.airplay.track_names import TrackName, TrackTable
from catalog_store.formula_cells import neutralise

if TYPE_CHECKING:
    from collections.abc import Sequence

STREAM = ReportedStream("0d9a1c39-6a86-4b27-9a4e-3f6a0ef2c8d1", "Radio", datetime(2026, 1, 1, tzinfo=UTC), None)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)


def sheet(tracks: Sequence[TrackName], airings: Sequence[tuple[int, int, int]]) -> Sheet:
    """`airings`: (place of the track, start, seconds)."""
    ordered = sorted(airings, key=lambda one: one[1])
    places, starts, seconds = (np.array([one[column] for one in ordered], np.int64) for column in range(3))
    known = TrackTable()
    numbers = np.array([known.add(track) for track in tracks], np.int64)
    return Sheet(STREAM, known, numbers, np.bincount(places, minlength=len(tracks)), places, starts, seconds.astype(np.int32), [])


def moment(unix: int) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@settings(deadline=None)
@given(
    heads=st.lists(TEXTS, min_size=1, max_size=4),
    airings=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**32), st.integers(0, 2**31 - 1)), max_size=20),
)
def test_joined_rows_equal_those_of_a_loop(heads: list[str], airings: list[tuple[int, int, int]]) -> None:
    near = [(place % len(heads), 1_767_225_600 + start % (92 * 86_400), seconds) for place, start, seconds in airings]
    made = sheet([TrackName(1, None, "", "")] * len(heads), near)
    written = bytes(join_rows(made, pa.array([head.encode() for head in heads]), lambda seconds: b"|%d\n" % seconds)).decode()
    columns = zip(made.track_of.tolist(), made.started_unix.tolist(), made.seconds.tolist(), strict=True)
    assert written == "".join(f"{heads[place]}{moment(start)}|{seconds}\n" for place, start, seconds in columns)


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=30))
def test_distinct_values_and_their_places_restore_the_values(values: list[int]) -> None:
    found, place = find_distinct(np.array(values, np.int64))
    assert found[place].tolist() == values
    assert sorted(found.tolist()) == sorted(set(values))


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_any_text_is_kept_in_parquet_and_neutralised_in_csv(title: str, artist: str) -> None:
    made = sheet(
        [TrackName(7, "GBAYE2600100", f'"{title},\r\n', artist), TrackName(8, None, title, artist)],
        [(0, 1_767_225_600, 5), (1, 1_767_225_700, 0)],
    )
    expected = [(7, "GBAYE2600100", f'"{title},\r\n', artist), (8, None, title, artist)]
    neutral = [(number, isrc, neutralise(one), neutralise(other)) for number, isrc, one, other in expected]
    parquet = pl.read_parquet(io.BytesIO(b"".join(write_parquet([made, made]))))
    assert parquet.select("track_id", "isrc", "title", "artist").rows() == expected * 2
    table = list(csv.DictReader(io.StringIO(b"".join(write_csv([made, made])).decode(), newline="")))
    assert [(int(row["track_id"]), row["isrc"] or None, row["title"], row["artist"]) for row in table] == neutral * 2


def test_report_without_streams_or_airings_is_a_valid_table() -> None:
    for sheets in ([], [sheet([], [])]):
        assert pl.read_parquet(io.BytesIO(b"".join(write_parquet(sheets)))).height == 0
        assert b"".join(write_csv(sheets)).count(b"\r\n") == 1
