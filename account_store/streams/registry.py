"""Registration of streams: create, list, stop. Workers' leases are in leases.py, airings in airings.py.

    made = accounts.streams.create(account_id, "https://radio.example.org/live.mp3", "Radio")
    accounts.streams.stop(account_id, made.stream_id)

A worker claims a new stream within a second or so. A stopped stream stays, with its airings, and is never monitored again.
Out of scope: whether the account may have streams (a card), whether its address is allowed (outbound_http).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from account_store.errors import InvalidValueError, StateError, UnknownError
from account_store.opaque_ids import generate_opaque_id
from account_store.schema import account
from account_store.streams.airings import close_open
from account_store.streams.gaps import close_gap
from account_store.streams.stream_events import emit_status_changed
from account_store.streams.stream_tables import stream
from outbound_http import InvalidAddressError, parse_target

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection, Engine, Row

    from account_store.clock import Clock

ACTIVE, STOPPED = "active", "stopped"
STARTING, RUNNING, RECONNECTING, FAILED = "starting", "running", "reconnecting", "failed"
RUNTIME_STATUSES = (STARTING, RUNNING, RECONNECTING, FAILED, STOPPED)
"""Failed: somebody must act. A worker still tries now and then (contract G2)."""
LONGEST_NAME = 200
LONGEST_URL = 2000
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


class StreamExistsError(StateError):
    """The account monitors this address already."""

    code = "stream_exists"

    def __init__(self, stream_id: str) -> None:
        """Name the stream that does."""
        super().__init__(f"stream {stream_id} monitors this address already")
        self.stream_id = stream_id


class TooManyStreamsError(StateError):
    """The account has its largest number of active streams."""

    code = "stream_limit"


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as its account sees it."""

    stream_id: str
    account_id: int
    url: str
    name: str
    status: str
    """ACTIVE or STOPPED."""
    detection_mode: str
    created_at: datetime
    stopped_at: datetime | None
    runtime_status: str
    """One of RUNTIME_STATUSES."""
    last_error: str | None
    """The last reason why it was not running."""
    last_error_at: datetime | None
    last_recognized_at: datetime | None
    audio_format: str | None
    """The format of the last connection: `mp3, 44100 Hz, stereo`."""


_COLUMNS = [stream.c[field.name] for field in fields(Stream)]


class Streams:
    """The streams of one database."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        """Use an open database."""
        self._engine = engine
        self._clock = clock

    def create(self, account_id: int, url: str, name: str, *, most: int | None = None) -> Stream:
        """Create an active stream, which waits for a worker. InvalidValueError: a text is blank or too long.

        StreamExistsError: an active stream of the account has that address, in any spelling. TooManyStreamsError: the account has `most`.
        """
        if not name.strip() or len(name) > LONGEST_NAME:
            raise InvalidValueError(f"a stream's name has 1 to {LONGEST_NAME} characters, got {len(name)}")
        if not url.strip() or len(url) > LONGEST_URL:
            raise InvalidValueError(f"a stream's address has 1 to {LONGEST_URL} characters, got {len(url)}")
        row = {"stream_id": generate_opaque_id(), "account_id": account_id, "url": url.strip(), "name": name.strip()}
        key = build_address_key(url.strip())
        with self._engine.begin() as connection:
            # The account's lock makes registrations count one after the other. On SQLite a transaction has the database to itself.
            connection.execute(select(account.c.account_id).where(account.c.account_id == account_id).with_for_update())
            is_active = (stream.c.account_id == account_id) & (stream.c.status == ACTIVE)
            active = connection.execute(select(stream.c.stream_id, stream.c.url).where(is_active)).all()
            # Compared here, because SQL cannot tell that two spellings are one address. An account has few active streams.
            same = next((one.stream_id for one in active if build_address_key(one.url) == key), None)
            if same is not None:
                raise StreamExistsError(same)
            if most is not None and len(active) >= most:
                raise TooManyStreamsError(f"the account has {len(active)} active streams and may have {most}; stop one first")
            connection.execute(stream.insert().values({**row, "created_at": self._clock()}))
        return self.get(account_id, row["stream_id"])  # type: ignore[arg-type]

    def get(self, account_id: int, stream_id: str) -> Stream:
        """Return one stream of the account, stopped or not; UnknownError when it has none of that id."""
        with self._engine.connect() as connection:
            return _build_stream(_find_row(connection, account_id, stream_id))

    def read_page(self, account_id: int, *, status: str | None = None, limit: int = 100, after: str | None = None) -> list[Stream]:
        """Return at most `limit` streams of the account, newest first, after the stream `after`."""
        query = select(*_COLUMNS).where(stream.c.account_id == account_id)
        query = query.order_by(stream.c.created_at.desc(), stream.c.stream_id.desc()).limit(limit)
        if status is not None:
            query = query.where(stream.c.status == status)
        with self._engine.connect() as connection:
            if after is not None:
                last = _find_row(connection, account_id, after)
                # Times are whole seconds. Ids sort by creation, also within a second (opaque_ids.py).
                is_next = (stream.c.created_at == last.created_at) & (stream.c.stream_id < after)
                query = query.where((stream.c.created_at < last.created_at) | is_next)
            return [_build_stream(row) for row in connection.execute(query)]

    def stop(self, account_id: int, stream_id: str) -> Stream:
        """Stop monitoring at this moment: its worker can write no more, and its airing ends. Stopping twice changes nothing."""
        now = self._clock()
        with self._engine.begin() as connection:
            # Locked: the worker, whose writes take the same lock, writes before all of this or not at all.
            found = _find_row(connection, account_id, stream_id, lock=True)
            if found.status == ACTIVE:
                close_open(connection, stream_id)
                close_gap(connection, stream_id, now)
                # A higher token shuts the worker out: it finds at its next write that its lease does not hold.
                fence = {"worker_id": None, "lease_ends_ms": None, "lease_token": stream.c.lease_token + 1}
                values = {"status": STOPPED, "stopped_at": now, "runtime_status": STOPPED, **fence}
                connection.execute(stream.update().where(stream.c.stream_id == stream_id).values(values))
                emit_status_changed(connection, stream_id, found.runtime_status, now)
        return self.get(account_id, stream_id)


def build_address_key(url: str) -> str:
    """Return one key for all spellings of an address: case of scheme and host, default port, trailing dot, fragment, escapes."""
    try:
        target = parse_target(url)
    except InvalidAddressError:
        return url
    return _ESCAPED.sub(_normalise_escape, target.url)


def _normalise_escape(found: re.Match[str]) -> str:
    """Normalise an escape after RFC 3986, 6.2.2: letters, digits and `._~-` need none, others are in capitals."""
    character = chr(int(found[1], 16))
    return character if _UNRESERVED.fullmatch(character) else found[0].upper()


def _find_row(connection: Connection, account_id: int, stream_id: str, *, lock: bool = False) -> Row[Any]:
    query = select(*_COLUMNS).where(stream.c.account_id == account_id, stream.c.stream_id == stream_id)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise UnknownError(f"there is no stream {stream_id!r}")
    return row


def _build_stream(row: Row[Any]) -> Stream:
    return Stream(**row._mapping)  # noqa: SLF001 -- the public name for a row as a mapping
