from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from account_store.errors import InvalidValueError, UnknownError
from account_store.streams import airings, runtime
from account_store.streams.airings import Hearing
from account_store.streams.gaps import SOURCE, close_gap, open_gap, record_gap
from account_store.streams.leases import LeaseLostError, Leases, hold
from account_store.streams.registry import (
    ACTIVE,
    FAILED,
    RUNNING,
    STARTING,
    STOPPED,
    Settings,
    StoppedStreamError,
    StreamExistsError,
)
from account_store.streams.stream_tables import airing, stream_gap
from account_store.webhooks.webhook_tables import webhook_event
from tests.account_store.conftest import new_caller
from tests.account_store.streams.airwaves import air, track

if TYPE_CHECKING:
    from account_store import Accounts
    from tests.account_store.conftest import HandClock


def test_stream_belongs_to_its_account_and_waits_for_a_worker(accounts: Accounts, clock: HandClock) -> None:
    mine, other = new_caller(accounts).account_id, new_caller(accounts).account_id
    made = accounts.streams.create(mine, " https://radio.example/live ", " Radio ")
    assert (made.url, made.name, made.status, made.runtime_status) == ("https://radio.example/live", "Radio", ACTIVE, STARTING)
    assert (made.created_at, made.stopped_at, made.detection_mode) == (clock.now, None, "balanced")
    assert accounts.streams.get(mine, made.stream_id) == made
    for ask in (accounts.streams.get, accounts.streams.stop):
        with pytest.raises(UnknownError):
            ask(other, made.stream_id)
    assert accounts.streams.read_page(other) == []


@pytest.mark.parametrize(
    ("address", "name"), [("", "Radio"), ("https://radio.example", " "), ("https://radio.example/" + "x" * 2000, "Radio")]
)
def test_stream_has_an_address_and_a_name(accounts: Accounts, address: str, name: str) -> None:
    with pytest.raises(InvalidValueError, match="has 1 to"):
        accounts.streams.create(new_caller(accounts).account_id, address, name)


def test_pages_hold_the_newest_first_without_repeating_or_skipping(accounts: Accounts, clock: HandClock) -> None:
    mine = new_caller(accounts).account_id
    made = []
    for number in range(7):
        clock.move(seconds=number % 2)  # some are of the same second
        made.append(accounts.streams.create(mine, f"https://radio.example/{number}", f"Radio {number}"))
    accounts.streams.stop(mine, made[3].stream_id)
    seen, after = [], None
    while page := accounts.streams.read_page(mine, limit=2, after=after):
        seen += page
        after = page[-1].stream_id
    assert [one.name for one in seen] == [one.name for one in reversed(made)]
    assert len(accounts.streams.read_page(mine, status=ACTIVE)) == 6


def test_stopping_ends_airing_gap_and_lease_at_once_and_only_once(accounts: Accounts, clock: HandClock) -> None:
    mine = new_caller(accounts).account_id
    accounts.webhooks.create(mine, "https://receiver.example/hook")
    made = accounts.streams.create(mine, "https://radio.example/live", "Radio")
    leases = Leases(accounts.engine, "worker of stop", 1000)
    [lease] = [one for one in leases.claim() if one.stream_id == made.stream_id]
    air(accounts, made.stream_id, track(1), clock.now, 60, ended=False)
    with accounts.engine.begin() as connection:
        open_gap(connection, made.stream_id, SOURCE, clock.now, "gone")
    clock.move(minutes=5)
    stopped = accounts.streams.stop(mine, made.stream_id)
    assert (stopped.status, stopped.stopped_at, stopped.runtime_status) == (STOPPED, clock.now, STOPPED)
    with accounts.engine.begin() as connection:
        [row] = connection.execute(airing.select().where(airing.c.stream_id == made.stream_id))
        [gap] = connection.execute(stream_gap.select().where(stream_gap.c.stream_id == made.stream_id))
        announced = [one.event_type for one in connection.execute(webhook_event.select().where(webhook_event.c.account_id == mine))]
        with pytest.raises(LeaseLostError):
            hold(connection, lease)
    assert (row.duration_seconds, (row.ended_at - row.started_at).total_seconds(), gap.ended_at) == (60, 60, clock.now)
    assert sorted(announced) == ["stream.status_changed", "stream.track_ended", "stream.track_started"]
    clock.move(minutes=5)
    assert accounts.streams.stop(mine, made.stream_id) == stopped
    assert leases.renew([lease]).lost == [lease]
    assert made.stream_id not in {one.stream_id for one in leases.claim()}


def test_change_of_state_emits_an_event_and_keeps_the_last_error(accounts: Accounts, clock: HandClock) -> None:
    mine = new_caller(accounts).account_id
    accounts.webhooks.create(mine, "https://receiver.example/hook", event_types=["stream.status_changed"])
    made = accounts.streams.create(mine, "https://radio.example/live", "Radio")
    states = [
        runtime.State(FAILED, "it asks for a password"),
        runtime.State(FAILED, "still"),
        runtime.State(RUNNING, audio_format="mp3, 44100 Hz, stereo"),
        runtime.State(RUNNING),
    ]
    for state in states:
        with accounts.engine.begin() as connection:
            runtime.update_runtime(connection, made.stream_id, state, clock.now)
    now = accounts.streams.get(mine, made.stream_id)
    assert (now.runtime_status, now.last_error, now.last_error_at) == (RUNNING, "still", clock.now)
    assert now.audio_format == "mp3, 44100 Hz, stereo"
    with accounts.engine.connect() as connection:
        assert len(connection.execute(webhook_event.select().where(webhook_event.c.account_id == mine)).all()) == 2


def test_one_gap_is_open_at_a_time_and_short_or_known_ones_are_dropped(accounts: Accounts, clock: HandClock) -> None:
    stream_id = accounts.streams.create(new_caller(accounts).account_id, "https://radio.example/live", "Radio").stream_id
    began = clock.now
    with accounts.engine.begin() as connection:
        open_gap(connection, stream_id, SOURCE, began, "first")
        open_gap(connection, stream_id, SOURCE, began, "second")
        clock.move(minutes=1)
        close_gap(connection, stream_id, clock.now)
        record_gap(connection, stream_id, "monitor", began, clock.now)
        open_gap(connection, stream_id, SOURCE, clock.now, "short")
        close_gap(connection, stream_id, clock.now, drop=True)
        rows = connection.execute(stream_gap.select().where(stream_gap.c.stream_id == stream_id)).all()
    assert [(row.cause, row.detail, row.started_at, row.ended_at) for row in rows] == [(SOURCE, "first", began, clock.now)]


def hearing(anchor: int, start: int, heard: int, count: int = 1) -> Hearing:
    return Hearing(anchor, start, heard, 0.9, count)


def test_written_airing_is_continued_and_a_repeat_is_another(accounts: Accounts) -> None:
    stream_id = accounts.streams.create(new_caller(accounts).account_id, "https://radio.example/live", "Radio").stream_id
    with accounts.engine.begin() as connection:
        first = airings.start(connection, stream_id, track(1), hearing(1_000_000, 1_000_000, 1_010_000))
        again = airings.start(connection, stream_id, track(1), hearing(1_002_900, 1_040_000, 1_050_000, 3))
        other = airings.start(connection, stream_id, track(2), hearing(1_060_000, 1_060_000, 1_070_000))
        back = airings.start(connection, stream_id, track(1), hearing(999_000, 1_080_000, 1_090_400, 4))
        repeat = airings.start(connection, stream_id, track(1), hearing(1_180_000, 1_180_000, 1_190_000))
        rows = {row.airing_id: row for row in connection.execute(airing.select().where(airing.c.stream_id == stream_id))}
        latest = airings.find_latest(connection, stream_id)
    assert first == again == back
    assert list(rows) == sorted({first, other, repeat})
    assert [rows[one].duration_seconds for one in (first, other, repeat)] == [90, 10, 10]
    assert [rows[one].ended_at is None for one in (first, other, repeat)] == [False, False, True]
    assert (rows[first].started_ms, rows[first].detection_count) == (1_000_000, 4)
    assert latest is not None
    assert (latest.airing_id, latest.track, latest.is_open) == (repeat, track(1), True)


def test_database_enforces_one_open_airing_a_stream(accounts: Accounts, clock: HandClock) -> None:
    from sqlalchemy.exc import IntegrityError  # noqa: PLC0415 -- only here

    stream_id = accounts.streams.create(new_caller(accounts).account_id, "https://radio.example/live", "Radio").stream_id
    air(accounts, stream_id, track(1), clock.now, 30, ended=False)
    with accounts.engine.connect() as connection:
        row = connection.execute(airing.select().where(airing.c.stream_id == stream_id)).one()
    for change in ({"anchor_ms": row.anchor_ms + 60_000}, {"ended_at": clock.now}):
        copy = {name: value for name, value in row._mapping.items() if name != "airing_id"} | change
        with pytest.raises(IntegrityError), accounts.engine.begin() as connection:
            connection.execute(airing.insert().values(copy))


def test_change_moves_the_stream_without_a_new_lease_and_keeps_its_history(accounts: Accounts) -> None:
    mine = new_caller(accounts).account_id
    made = accounts.streams.create(mine, "https://radio.example/live", "Radio")
    leases = Leases(accounts.engine, "follows changes", 1000)
    [lease] = [one for one in leases.claim() if one.stream_id == made.stream_id]
    air(accounts, made.stream_id, track(1), made.created_at, 30)
    assert leases.renew([lease]).changed == []
    changed = accounts.streams.change(
        mine, made.stream_id, url="https://radio.example/new", name="New", detection_mode="strict", linger_seconds=60
    )
    assert (changed.url, changed.name, changed.detection_mode, changed.linger_seconds) == ("https://radio.example/new", "New", "strict", 60)
    assert changed.stream_id == made.stream_id
    renewal = leases.renew([lease])
    assert renewal.lost == []
    [now] = renewal.changed
    assert (now.url, now.settings, now.token) == (changed.url, Settings("strict", 60), lease.token)
    assert leases.renew([now]).changed == []
    with accounts.engine.begin() as connection:
        hold(connection, now)
    assert len(accounts.history.read_page(made.stream_id)) == 1
    assert accounts.streams.change(mine, made.stream_id) == changed, "nothing sent changes nothing"


def test_change_is_refused_for_taken_addresses_bad_settings_and_stopped_streams(accounts: Accounts) -> None:
    mine, other = new_caller(accounts).account_id, new_caller(accounts).account_id
    first, second = (accounts.streams.create(mine, f"https://radio.example/{number}", "Radio") for number in (1, 2))
    with pytest.raises(StreamExistsError, match=first.stream_id):
        accounts.streams.change(mine, second.stream_id, url="HTTPS://RADIO.example:443/1")
    for bad in ({"detection_mode": "loud"}, {"linger_seconds": 9}, {"linger_seconds": 301}, {"url": " "}, {"name": ""}):
        with pytest.raises(InvalidValueError):
            accounts.streams.change(mine, second.stream_id, **bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="detection_mode is one of strict"):
        accounts.streams.create(mine, "https://radio.example/3", "Radio", Settings("loud"))
    with pytest.raises(UnknownError):
        accounts.streams.change(other, second.stream_id, name="Theirs")
    assert accounts.streams.get(mine, second.stream_id) == second
    assert accounts.streams.change(mine, second.stream_id, url="https://RADIO.example/2").url == "https://RADIO.example/2"
    accounts.streams.stop(mine, second.stream_id)
    with pytest.raises(StoppedStreamError):
        accounts.streams.change(mine, second.stream_id, name="Again")
