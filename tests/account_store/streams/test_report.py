"""The airings of months: packed days say what the table of airings says, whatever the window, and however often they are made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from account_store.streams import report
from account_store.streams.stream_tables import airing, airplay_day, stream
from tests.account_store.conftest import new_caller
from tests.account_store.streams.airwaves import air, track

if TYPE_CHECKING:
    from account_store import Accounts
    from account_store.streams.report import ReportedStream
    from tests.account_store.conftest import HandClock

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
"""Time of the clock at its start."""
MINUTE = timedelta(minutes=1)


def midnight(days_ago: int) -> datetime:
    return NOW.replace(hour=0) - timedelta(days=days_ago)


def new_stream(accounts: Accounts, *, created_at: datetime = NOW - timedelta(days=100)) -> ReportedStream:
    made = accounts.streams.create(new_caller(accounts).account_id, "https://radio.example.org/live", "Radio")
    with accounts.engine.begin() as connection:
        connection.execute(stream.update().where(stream.c.stream_id == made.stream_id).values(created_at=created_at))
    [reported] = accounts.airplay.list_streams(made.account_id, created_at, NOW + timedelta(days=1))
    return reported


def rows(accounts: Accounts, one: ReportedStream, since: datetime, until: datetime) -> list[tuple[int, int, int]]:
    [found] = accounts.airplay.iterate_airings([one], since, until)
    return list(zip(found.recording_ids.tolist(), found.started_unix.tolist(), found.seconds.tolist(), strict=True))


def days_packed(accounts: Accounts, one: ReportedStream) -> int:
    with accounts.engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(airplay_day).where(airplay_day.c.stream_id == one.stream_id)) or 0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    plays=st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 6 * 86_400), st.integers(0, 4000)), max_size=12, unique_by=lambda one: one[1]
    ),
    windows=st.lists(st.tuples(st.integers(0, 6 * 86_400), st.integers(1, 6 * 86_400)), min_size=3, max_size=3),
)
def test_report_window_has_its_airings_whether_days_are_packed_or_not(
    accounts: Accounts, plays: list[tuple[int, int, int]], windows: list[tuple[int, int]]
) -> None:
    one, base = new_stream(accounts), midnight(6)
    for number, offset, seconds in sorted(plays, key=lambda play: play[1]):
        air(accounts, one.stream_id, track(number), base + timedelta(seconds=offset), seconds)
    with accounts.engine.connect() as connection:
        columns = (airing.c.recording_id, airing.c.started_at, airing.c.duration_seconds)
        query = select(*columns).where(airing.c.stream_id == one.stream_id).order_by(airing.c.started_at, airing.c.airing_id)
        aired = [(row[0], int(row[1].timestamp()), row[2]) for row in connection.execute(query)]
    for start, length in windows:
        since, until = base + timedelta(seconds=start), base + timedelta(seconds=start + length)
        expected = [row for row in aired if since.timestamp() <= row[1] < until.timestamp()]
        assert rows(accounts, one, since, until) == expected, "nothing is packed"
    accounts.airplay.settle()
    for start, length in windows:
        since, until = base + timedelta(seconds=start), base + timedelta(seconds=start + length)
        expected = [row for row in aired if since.timestamp() <= row[1] < until.timestamp()]
        assert rows(accounts, one, since, until) == expected, "as it was packed meanwhile"


def test_only_settled_days_are_packed_and_only_once(accounts: Accounts, clock: HandClock) -> None:
    one = new_stream(accounts, created_at=midnight(10) + MINUTE)
    for day in range(6):
        air(accounts, one.stream_id, track(day), midnight(day) + timedelta(hours=3), 100)
    accounts.airplay.settle()
    assert not accounts.airplay.is_behind.is_set()
    expected = rows(accounts, one, midnight(10), NOW)
    assert len(expected) == 6
    assert not accounts.airplay.is_behind.is_set(), "all that can be packed is"
    assert days_packed(accounts, one) == 9, "today and yesterday may still change"
    air(accounts, one.stream_id, track(7), midnight(1) + timedelta(hours=23), 100)
    assert len(rows(accounts, one, midnight(10), NOW)) == 7
    clock.move(days=1)
    assert accounts.airplay.settle() >= 1
    assert days_packed(accounts, one) == 10
    assert accounts.airplay.settle() == 0
    assert len(rows(accounts, one, midnight(10), NOW)) == 7


def test_settling_goes_back_to_the_beginning_and_ends_with_the_stream(accounts: Accounts, clock: HandClock) -> None:
    one = new_stream(accounts, created_at=midnight(80) + MINUTE)
    accounts.airplay.settle()
    assert days_packed(accounts, one) == 79
    [account_id] = [row.account_id for row in [accounts.streams.get(_owner(accounts, one), one.stream_id)]]
    accounts.streams.stop(account_id, one.stream_id)
    clock.move(days=30)
    accounts.airplay.settle()
    assert days_packed(accounts, one) == 81


def _owner(accounts: Accounts, one: ReportedStream) -> int:
    with accounts.engine.connect() as connection:
        return int(connection.execute(select(stream.c.account_id).where(stream.c.stream_id == one.stream_id)).scalar_one())


def test_day_with_an_airing_that_goes_on_is_not_settled(accounts: Accounts, clock: HandClock) -> None:
    one = new_stream(accounts, created_at=midnight(5) + MINUTE)
    air(accounts, one.stream_id, track(1), midnight(4) + timedelta(hours=1), 100, ended=False)
    clock.move(days=3)
    assert rows(accounts, one, midnight(5), clock.now) == [(1, int((midnight(4) + timedelta(hours=1)).timestamp()), 100)]
    accounts.airplay.settle()
    assert days_packed(accounts, one) == 1, "the day before it"
    air(accounts, one.stream_id, track(1), midnight(4) + timedelta(hours=1), 250)
    assert [row[2] for row in rows(accounts, one, midnight(5), clock.now)] == [250]


def test_late_airing_is_in_the_report(accounts: Accounts) -> None:
    one = new_stream(accounts, created_at=midnight(5) + MINUTE)
    air(accounts, one.stream_id, track(1), midnight(4), 100)
    accounts.airplay.settle()
    assert len(rows(accounts, one, midnight(5), NOW)) == 1
    air(accounts, one.stream_id, track(2), midnight(4) + timedelta(hours=1), 70)
    assert [row[0] for row in rows(accounts, one, midnight(5), NOW)] == [1, 2], "its day was packed before"
    assert [row[2] for row in rows(accounts, one, midnight(5), NOW)] == [100, 70]


def test_airing_that_began_on_the_day_before_its_stream_was_registered_is_in_the_report(accounts: Accounts) -> None:
    one = new_stream(accounts, created_at=midnight(3) + timedelta(seconds=5))
    air(accounts, one.stream_id, track(1), midnight(3) - timedelta(seconds=10), 200)
    for _ in ("before its day is packed", "afterwards"):
        assert [row[0] for row in rows(accounts, one, midnight(4), NOW)] == [1]
        assert accounts.airplay.list_streams(_owner(accounts, one), midnight(30), midnight(3)) == [one], "as a report of the month before"
        assert [row[0] for row in rows(accounts, one, midnight(30), midnight(3))] == [1]
        accounts.airplay.settle()
    assert not accounts.airplay.is_behind.is_set()


def test_packed_day_can_be_thrown_away(accounts: Accounts) -> None:
    one = new_stream(accounts, created_at=midnight(5) + MINUTE)
    air(accounts, one.stream_id, track(1), midnight(4), 100)
    accounts.airplay.settle()
    before = rows(accounts, one, midnight(5), NOW)
    with accounts.engine.begin() as connection:
        connection.execute(airplay_day.delete().where(airplay_day.c.stream_id == one.stream_id))
    assert rows(accounts, one, midnight(5), NOW) == before != []
    assert accounts.airplay.is_behind.is_set(), "it can be packed again"
    assert accounts.airplay.settle() >= 4
    assert rows(accounts, one, midnight(5), NOW) == before


def test_report_separates_streams_with_packed_and_unpacked_days(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_TOGETHER", 4)
    streams = [new_stream(accounts, created_at=midnight(20 + number % 3)) for number in range(6)]
    for day in (1, 3, 18):
        for number, one in enumerate(streams[::2]):
            for more in (1, 0):
                air(accounts, one.stream_id, track(100 * number + more), midnight(day) + timedelta(seconds=60 * number + more), 30)
    alone = [rows(accounts, one, midnight(19), NOW) for one in streams]
    together = lambda: [len(one.seconds) for one in accounts.airplay.iterate_airings(streams, midnight(19), NOW)]  # noqa: E731
    assert together() == [len(one) for one in alone] == [6, 0] * 3
    accounts.airplay.settle()
    with accounts.engine.begin() as connection:
        some = airplay_day.c.stream_id.in_([one.stream_id for one in streams[::3]]) & (airplay_day.c.day < f"{midnight(5):%Y-%m-%d}")
        connection.execute(airplay_day.delete().where(some))
    assert [rows(accounts, one, midnight(19), NOW) for one in streams] == alone
    assert together() == [len(one) for one in alone]
    assert alone[2] == sorted(alone[2], key=lambda row: row[1])


def test_streams_of_a_report_were_active_in_its_time(accounts: Accounts, clock: HandClock) -> None:
    account_id = new_caller(accounts).account_id
    first = accounts.streams.create(account_id, "https://radio.example.org/1", "First")
    clock.move(days=1)
    second = accounts.streams.create(account_id, "https://radio.example.org/2", "Second")
    accounts.streams.stop(account_id, first.stream_id)
    names = lambda since, until: [one.name for one in accounts.airplay.list_streams(account_id, since, until)]  # noqa: E731
    assert names(NOW - timedelta(days=9), NOW) == [], "before it began"
    assert names(NOW, NOW + timedelta(seconds=1)) == ["First"]
    assert names(NOW, NOW + timedelta(days=9)) == ["First", "Second"]
    assert names(NOW + timedelta(days=1, seconds=1), NOW + timedelta(days=9)) == ["Second"]
    assert second.account_id == account_id
    assert accounts.airplay.list_streams(account_id + 1000, NOW, NOW + timedelta(days=9)) == []


@pytest.mark.parametrize("count", [1, 1200])
def test_recording_has_the_names_of_its_last_airing(accounts: Accounts, count: int) -> None:
    one = new_stream(accounts)
    air(accounts, one.stream_id, track(5, isrc="GBAYE2600100"), midnight(3), 10)
    renamed = track(5)
    air(accounts, one.stream_id, type(renamed)(5, "Renamed", "Artist 5", None, 200), midnight(2), 10)
    found = accounts.airplay.find_aired_names(one.stream_id, [5, *range(10_000, 10_000 + count)])
    assert found == {5: ("Renamed", "Artist 5", None)}
