from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from account_store.streams.segments import MUSIC_UNKNOWN, SILENCE, TALK, Segment, SegmentLog, cut_airings
from tests.account_store.conftest import new_caller
from tests.account_store.streams.airwaves import air, track

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from account_store import Accounts

S = 1000


@pytest.mark.parametrize(
    ("played", "left"),
    [
        ([], [(TALK, 0, 20), (MUSIC_UNKNOWN, 20, 60)]),
        ([(30, 40)], [(TALK, 0, 20), (MUSIC_UNKNOWN, 20, 30), (MUSIC_UNKNOWN, 40, 60)]),
        ([(19, 100)], [(TALK, 0, 19)]),
        ([(1, 18), (18, 59)], []),
        ([(0, 30), (20, 25), (50, 52)], [(MUSIC_UNKNOWN, 30, 60)]),
    ],
    ids=["nothing", "within one", "from the end of one on", "short rests", "one within another, and a rest too short to split"],
)
def test_airings_are_cut_out(played: list[tuple[int, int]], left: list[tuple[str, int, int]]) -> None:
    segments = [Segment(TALK, 0, 20 * S), Segment(MUSIC_UNKNOWN, 20 * S, 60 * S)]
    found = cut_airings(segments, [(start * S, end * S) for start, end in played])
    assert [(one.kind, one.started_ms // S, one.ended_ms // S) for one in found] == left


def test_segments_of_two_workers_are_joined_and_those_across_a_gap_are_not() -> None:
    parts = [Segment(TALK, 0, 20 * S), Segment(TALK, 21 * S, 30 * S), Segment(TALK, 18 * S, 40 * S), Segment(TALK, 60 * S, 70 * S)]
    assert cut_airings(parts, []) == [Segment(TALK, 0, 40 * S), Segment(TALK, 60 * S, 70 * S)]


def test_what_is_heard_is_written_once_and_read_between_times(accounts: Accounts) -> None:
    mine = new_caller(accounts).account_id
    stream_id = accounts.streams.create(mine, "https://radio.example/live", "Radio").stream_id
    began = datetime(2026, 11, 21, 12, tzinfo=UTC)
    base, log = int(began.timestamp() * 1000), SegmentLog()

    def post(write: Callable[[Connection, str], None], replaces: object = None) -> None:
        assert replaces is not None
        with accounts.engine.begin() as connection:
            write(connection, stream_id)

    for kind, start, end in ((TALK, 0, 5), (TALK, 5, 10), (SILENCE, 10, 15), (MUSIC_UNKNOWN, 15, 25), (MUSIC_UNKNOWN, 40, 60)):
        log.note(kind, base + start * S, base + end * S, post)
    everything = accounts.segments.list_segments(stream_id, None, None)
    spans = [(one.kind, (one.started_ms - base) // S, (one.ended_ms - base) // S) for one in everything]
    assert spans == [(TALK, 0, 10), (SILENCE, 10, 15), (MUSIC_UNKNOWN, 15, 25), (MUSIC_UNKNOWN, 40, 60)]
    since, until = began + timedelta(seconds=12), began + timedelta(seconds=50)
    between = accounts.segments.list_segments(stream_id, since, until)
    assert [(one.kind, (one.started_ms - base) // S, (one.ended_ms - base) // S) for one in between] == [
        (SILENCE, 12, 15), (MUSIC_UNKNOWN, 15, 25), (MUSIC_UNKNOWN, 40, 50)
    ]  # fmt: skip
    air(accounts, stream_id, track(1), began + timedelta(seconds=18), 30)
    assert [one.kind for one in accounts.segments.list_segments(stream_id, since, None)] == [SILENCE, MUSIC_UNKNOWN, MUSIC_UNKNOWN]
