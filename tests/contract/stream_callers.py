"""Callers with a payment card, their streams, and what aired on them, written by the functions that a monitor worker uses."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from account_store.streams import airings, runtime
from account_store.streams.airings import Hearing, PlayedTrack
from account_store.streams.heard_months import record_heard_month
from account_store.streams.stream_tables import stream
from tests.contract.awkward import isrc

if TYPE_CHECKING:
    import httpx

    from tests.contract.conftest import Api


STREAMS = "/v1/streams"
REPORT = "/v1/streams/report"
PUBLIC = "http://93.184.215.14:8000/live.mp3"
_numbers = itertools.count(1)
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


def with_card(server: Api, plan: str = "custom") -> Api:
    caller = server.as_caller(plan)
    server.accounts.set_card(account_of(caller), has_card=True)
    return caller


def account_of(caller: Api) -> int:
    found = caller.accounts.keys.find_caller(caller.key)
    assert found is not None
    return found.account_id


def new_stream(caller: Api, name: str = "Radio") -> str:
    answer = caller.post(STREAMS, {"url": f"http://93.184.215.14:8000/{next(_numbers)}.mp3", "name": name})
    assert answer.status_code == 200, answer.text
    identity: str = answer.json()["id"]
    return identity


def began(caller: Api, stream_id: str, moment: datetime) -> None:
    """Backdate the registration of the stream."""
    with caller.accounts.engine.begin() as connection:
        connection.execute(stream.update().where(stream.c.stream_id == stream_id).values(created_at=moment))


def tell(caller: Api, stream_id: str, status: str, error: str | None = None) -> None:
    with caller.accounts.engine.begin() as connection:
        runtime.update_runtime(connection, stream_id, runtime.State(status, error), datetime.now(UTC))


def air(
    caller: Api, stream_id: str, recording_id: int, started_at: datetime, seconds: int = 200, *, ended: bool = True, title: str = "As aired"
) -> None:
    """Write an airing that rests on three detections."""
    start = int(started_at.timestamp() * 1000)
    track = PlayedTrack(recording_id, title, "Whoever it was", isrc(recording_id % 1000), 201)
    with caller.accounts.engine.begin() as connection:
        for heard in (12_000, 17_000, seconds * 1000):
            airings.start(connection, stream_id, track, Hearing(start, start, start + heard, 0.93, 3))
        if ended:
            airings.close_open(connection, stream_id)


def ask_report(caller: Api, accept: str = "application/json", **query: object) -> httpx.Response:
    return caller.get(REPORT, headers={"accept": accept}, **query)


def days(first: datetime, last: datetime) -> dict[str, str]:
    return {"from": str(first.date()), "until": str(last.date())}


def heard(caller: Api, stream_id: str, *months: str) -> None:
    """Record the months as the write queue of a monitor worker does."""
    with caller.accounts.engine.begin() as connection:
        for month in months:
            record_heard_month(connection, stream_id, month)
