"""The log of a stream, what is on now, and when nobody listened."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from account_store.streams import gaps, runtime
from account_store.streams.history import STILL_HEARD_SECONDS, Place
from tests.account_store.conftest import new_caller
from tests.account_store.streams.airwaves import air, track

if TYPE_CHECKING:
    from account_store import Accounts
    from account_store.streams.registry import Stream
    from tests.account_store.conftest import HandClock


def new_stream(accounts: Accounts) -> Stream:
    return accounts.streams.create(new_caller(accounts).account_id, "https://radio.example.org/live", "Radio")


def run(accounts: Accounts, stream_id: str, status: str = "running") -> None:
    with accounts.engine.begin() as connection:
        runtime.update_runtime(connection, stream_id, runtime.State(status), accounts.clock())


def test_pages_fit_together_newest_first(accounts: Accounts, clock: HandClock) -> None:
    one, other = new_stream(accounts), new_stream(accounts)
    ids = [air(accounts, one.stream_id, track(number % 3), clock.now + timedelta(minutes=number // 2), 10) for number in range(9)]
    air(accounts, other.stream_id, track(77), clock.now, 10)
    whole = accounts.history.read_page(one.stream_id)
    assert sorted((one.airing_id for one in whole), reverse=True) == sorted(ids, reverse=True)
    assert [(one.started_at, one.airing_id) for one in whole] == sorted(((one.started_at, one.airing_id) for one in whole), reverse=True)
    turned = accounts.history.read_page(one.stream_id, limit=2)
    while page := accounts.history.read_page(one.stream_id, limit=2, behind=Place(turned[-1].started_at, turned[-1].airing_id)):
        turned += page
    assert turned == whole


def test_window_takes_airings_that_began_in_it(accounts: Accounts, clock: HandClock) -> None:
    one = new_stream(accounts)
    for hour in range(4):
        air(accounts, one.stream_id, track(hour), clock.now + timedelta(hours=hour), 10)
    found = accounts.history.read_page(one.stream_id, since=clock.now + timedelta(hours=1), until=clock.now + timedelta(hours=3))
    assert [airing.recording_id for airing in found] == [2, 1]


def test_airing_is_on_air_when_its_running_stream_heard_it_a_moment_ago(accounts: Accounts, clock: HandClock) -> None:
    one, quiet = new_stream(accounts), new_stream(accounts)
    ids = [one.stream_id, quiet.stream_id]
    air(accounts, one.stream_id, track(1), clock.now - timedelta(seconds=60), 60, ended=False)
    assert accounts.history.find_on_air(ids) == {}, "it does not run yet"
    run(accounts, one.stream_id)
    run(accounts, quiet.stream_id)
    assert {stream: airing.recording_id for stream, airing in accounts.history.find_on_air(ids).items()} == {one.stream_id: 1}
    clock.move(seconds=STILL_HEARD_SECONDS)
    assert set(accounts.history.find_on_air(ids)) == {one.stream_id}
    clock.move(seconds=1)
    assert accounts.history.find_on_air(ids) == {}, "its airing is open still, but this is talk by now"
    assert accounts.history.find_on_air([]) == {}


def test_ended_airing_is_not_on_air(accounts: Accounts, clock: HandClock) -> None:
    one = new_stream(accounts)
    run(accounts, one.stream_id)
    air(accounts, one.stream_id, track(1), clock.now - timedelta(seconds=60), 60)
    assert accounts.history.find_on_air([one.stream_id]) == {}


def test_gaps_that_overlap_the_time_are_listed(accounts: Accounts, clock: HandClock) -> None:
    one = new_stream(accounts)
    start = clock.now
    with accounts.engine.begin() as connection:
        gaps.open_gap(connection, one.stream_id, gaps.SOURCE, start, "refused")
        gaps.close_gap(connection, one.stream_id, start + timedelta(hours=1))
        gaps.open_gap(connection, one.stream_id, gaps.MONITOR, start + timedelta(hours=5))
    found = accounts.history.list_gaps(one.stream_id, start, start + timedelta(days=1))
    assert [(gap.cause, gap.detail, gap.ended_at) for gap in found] == [
        ("source", "refused", start + timedelta(hours=1)),
        ("monitor", None, None),
    ]
    assert accounts.history.list_gaps(one.stream_id, start + timedelta(hours=1), start + timedelta(hours=5)) == []
    assert len(accounts.history.list_gaps(one.stream_id, start + timedelta(days=3), start + timedelta(days=4))) == 1
