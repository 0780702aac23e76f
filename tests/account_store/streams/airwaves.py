"""Streams and airings put into a store as a worker would, for tests of what reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from account_store.streams import airings
from account_store.streams.airings import Hearing, PlayedTrack

if TYPE_CHECKING:
    from datetime import datetime

    from account_store import Accounts


def air(
    accounts: Accounts,
    stream_id: str,
    track: PlayedTrack,
    started_at: datetime,
    seconds: int,
    *,
    confidence: float = 0.9,
    ended: bool = True,
) -> int:
    """Write an airing that was heard for `seconds`, and return its id."""
    started_ms = int(started_at.timestamp() * 1000)
    hearing = Hearing(started_ms, started_ms, started_ms + seconds * 1000, confidence, 2)
    with accounts.engine.begin() as connection:
        airing_id = airings.start(connection, stream_id, track, hearing)
        airings.extend(connection, airing_id, hearing)
        if ended:
            airings.close_open(connection, stream_id)
    return airing_id


def track(number: int, *, isrc: str | None = None) -> PlayedTrack:
    return PlayedTrack(number, f"Title {number}", f"Artist {number}", isrc, 200)
