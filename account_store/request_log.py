"""The request log: each request of an account in the last week, newest first, and sums by hour.

    accounts.requests.add([(account_id, *request), ...])          # a worker, every few seconds
    page = accounts.requests.read_page(account_id, RequestFilter(code="not_found"), limit=50)
    page.requests, page.following                                 # `following` is the `before` of the next page

A row for each request would cost more CPU than a lookup. So `add` writes one compressed batch for each account: some 20 bytes and 2 us of
CPU a request. Batches of several workers overlap by the seconds between two calls of `add`. Out of scope: bodies, parameters, addresses of
clients; none of them is kept.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import zstandard
from sqlalchemy import delete, func, select, text

from account_store.database import connect_for_reads
from account_store.schema import request_batch, request_hour

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Engine

    from account_store.clock import Clock

KEPT_FOR = timedelta(days=7)
MOST_KEPT = 1_000_000
"""Requests of an account; older ones are removed before their time. An account that is refused 10,000 times a second fills no disk."""
MOST_SCANNED = 30_000
"""Requests that are compared with the filter for one page: .1 to .2 s."""
HOUR = 3600
_BATCHES_AT_ONCE = 32
_FAULT = 500
_REFUSAL = 400

OUTCOMES = ("success", "refused", "fault")
"""Status below 400, below 500, and above."""


class LoggedRequest(msgspec.Struct, array_like=True, frozen=True):
    """One request. `happened_at` in seconds since 1970, `route` as declared (empty: unknown), `code` of its problem."""

    happened_at: float
    key_id: int
    method: str
    route: str
    status: int
    code: str | None
    credits: int
    microseconds: int
    request_id: str


Entry = tuple[int, float, int, str, str, int, str | None, int, int, str]
"""An account id, then the members of a LoggedRequest."""


class Place(NamedTuple):
    """A request in the log: requests before the `position` of the batch, and of earlier batches, are older."""

    batch_id: int
    position: int


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Conditions that all hold; an empty one is none. `route` is a part of the route, `outcome` one of OUTCOMES."""

    route: str = ""
    outcome: str = ""
    code: str = ""
    key_id: int | None = None
    request_id: str = ""

    def accepts(self, one: LoggedRequest) -> bool:
        """Return whether the request fulfils all conditions."""
        return (
            self.route in one.route
            and (not self.outcome or self.outcome == classify_status(one.status))
            and (not self.code or self.code == one.code)
            and (self.key_id is None or self.key_id == one.key_id)
            and (not self.request_id or self.request_id == one.request_id)
        )


@dataclass(frozen=True, slots=True)
class RequestPage:
    """Requests, newest first. `following` is None at the end. A page may be short, even empty, before the end: see MOST_SCANNED."""

    requests: list[LoggedRequest]
    following: Place | None


class HourSum(NamedTuple):
    """Sums of an hour (seconds since 1970) for one key, route, status and code (empty without an error)."""

    hour: int
    key_id: int
    method: str
    route: str
    status: int
    code: str
    requests: int
    credits: int
    microseconds: int


_decode = msgspec.msgpack.Decoder(list[LoggedRequest]).decode
_encode = msgspec.msgpack.Encoder().encode
# Both databases read this form of ON CONFLICT.
_ADD_HOUR = text("""
INSERT INTO request_hour AS h (account_id, hour_unix, key_id, method, route, status, code, requests, credits, microseconds)
VALUES (:account_id, :hour, :key_id, :method, :route, :status, :code, :requests, :credits, :microseconds)
ON CONFLICT (account_id, hour_unix, key_id, method, route, status, code) DO UPDATE SET requests = h.requests + excluded.requests,
    credits = h.credits + excluded.credits, microseconds = h.microseconds + excluded.microseconds
""")


class RequestLog:
    """The request logs of all accounts. All methods block."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        """Use an open database."""
        self._engine = engine
        self._clock = clock

    def add(self, entries: Sequence[Entry]) -> None:
        """Add requests, oldest first, in one transaction."""
        if not entries:
            return
        by_account: defaultdict[int, list[tuple[object, ...]]] = defaultdict(list)
        sums: defaultdict[tuple[int | str, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
        for entry in entries:
            account_id, at, key_id, method, route, status, code, used, microseconds, _ = entry
            by_account[account_id].append(entry[1:])
            figures = sums[account_id, int(at) // HOUR * HOUR, key_id, method, route, status, code or ""]
            figures[0] += 1
            figures[1] += used
            figures[2] += microseconds
        # Level 1: level 3 takes twice the time for 5 % fewer bytes.
        compress = zstandard.ZstdCompressor(level=1).compress
        batches = [
            {"account_id": account_id, "last_unix": int(entries[-1][1]), "request_count": len(some), "body": compress(_encode(some))}
            for account_id, some in by_account.items()
        ]
        names = ("account_id", "hour", "key_id", "method", "route", "status", "code", "requests", "credits", "microseconds")
        # Sorted: two workers that lock the same rows in another order would wait for each other for ever.
        hours = [dict(zip(names, (*key, *figures), strict=True)) for key, figures in sorted(sums.items())]
        with self._engine.begin() as connection:
            connection.execute(request_batch.insert(), batches)
            connection.execute(_ADD_HOUR, hours)

    def prune(self) -> None:
        """Remove requests older than KEPT_FOR, and the oldest ones of accounts with more than MOST_KEPT."""
        ends = int((self._clock() - KEPT_FOR).timestamp())
        with self._engine.begin() as connection:
            connection.execute(delete(request_batch).where(request_batch.c.last_unix < ends))
            connection.execute(delete(request_hour).where(request_hour.c.hour_unix < ends // HOUR * HOUR))
            totals = select(request_batch.c.account_id).group_by(request_batch.c.account_id)
            for account_id in connection.scalars(totals.having(func.sum(request_batch.c.request_count) > MOST_KEPT)).all():
                _remove_oldest(connection, account_id)

    def read_page(self, account_id: int, wanted: RequestFilter, *, limit: int, before: Place | None = None) -> RequestPage:
        """Return requests that the filter accepts, older than `before`, at most `limit`."""
        found: list[LoggedRequest] = []
        for scanned, (place, one) in enumerate(self._iterate(account_id, before)):
            if len(found) == limit or scanned == MOST_SCANNED:
                return RequestPage(found, Place(place.batch_id, place.position + 1))
            if wanted.accepts(one):
                found.append(one)
        return RequestPage(found, None)

    def read_hours(self, account_id: int) -> list[HourSum]:
        """Return the sums of the hours kept, oldest first."""
        order = (request_hour.c.hour_unix, request_hour.c.route, request_hour.c.status)
        query = select(*request_hour.c[1:]).where(request_hour.c.account_id == account_id).order_by(*order)
        with connect_for_reads(self._engine) as connection:
            return [HourSum(*row) for row in connection.execute(query)]

    def _iterate(self, account_id: int, before: Place | None) -> Iterator[tuple[Place, LoggedRequest]]:
        """Yield requests older than `before` with their places, newest first."""
        columns = request_batch.c
        query = select(columns.batch_id, columns.body).where(columns.account_id == account_id).order_by(columns.batch_id.desc())
        decompress = zstandard.ZstdDecompressor().decompress
        place = before
        while True:
            older = query
            if place is not None:
                # Whole batches are passed over; of the others the rest is read.
                older = query.where(columns.batch_id < place.batch_id + (place.position > 0))
            with connect_for_reads(self._engine) as connection:
                batches = connection.execute(older.limit(_BATCHES_AT_ONCE)).all()
            if not batches:
                return
            for batch_id, body in batches:
                requests = _decode(decompress(body))
                if place is not None and batch_id == place.batch_id:
                    requests = requests[: place.position]
                for index in range(len(requests) - 1, -1, -1):
                    yield Place(batch_id, index), requests[index]
                place = Place(batch_id, 0)


def classify_status(status: int) -> str:
    """Return the outcome of a status, one of OUTCOMES."""
    return OUTCOMES[(status >= _REFUSAL) + (status >= _FAULT)]


def _remove_oldest(connection: Connection, account_id: int) -> None:
    """Remove the batches of an account beyond its newest MOST_KEPT requests."""
    columns = request_batch.c
    newer = func.sum(columns.request_count).over(order_by=columns.batch_id.desc()).label("newer")
    counted = select(columns.batch_id, newer).where(columns.account_id == account_id).subquery()
    last = connection.scalar(select(func.max(counted.c.batch_id)).where(counted.c.newer > MOST_KEPT))
    if last is not None:
        connection.execute(delete(request_batch).where(columns.account_id == account_id, columns.batch_id <= last))
