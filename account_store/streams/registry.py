"""Registration of streams: create, change, list, stop. Workers' leases are in leases.py, airings in airings.py.

    made = accounts.streams.create(account_id, "https://radio.example.org/live.mp3", "Radio")
    accounts.streams.change(account_id, made.stream_id, url="https://radio.example.org/new.mp3")
    accounts.streams.stop(account_id, made.stream_id)

A worker claims a new stream within a second or so. A stopped stream stays, with its airings, and is never monitored again.
Out of scope: whether the account may have streams (a card), whether its address is allowed (outbound_http).
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from account_store.audit import record
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
STRICT, BALANCED, SENSITIVE = DETECTION_MODES = ("strict", "balanced", "sensitive")
"""Strict: every match needs a second one. Balanced: a match without doubt needs none. Sensitive: no match needs one."""
SHORTEST_LINGER, DEFAULT_LINGER, LONGEST_LINGER = 10, 30, 300
"""Seconds that a track may be covered by other sound until its airing ends."""
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


class StoppedStreamError(StateError):
    """The stream was stopped, which is final."""

    code = "stream_stopped"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the detection on a stream. A worker takes a change over within seconds."""

    detection_mode: str = BALANCED
    """One of DETECTION_MODES."""
    linger_seconds: int = DEFAULT_LINGER

    def check(self) -> None:
        """Raise InvalidValueError if a value is out of its range."""
        if self.detection_mode not in DETECTION_MODES:
            raise InvalidValueError(f"detection_mode is one of {', '.join(DETECTION_MODES)}, got {self.detection_mode!r}")
        if not SHORTEST_LINGER <= self.linger_seconds <= LONGEST_LINGER:
            raise InvalidValueError(f"linger_seconds is from {SHORTEST_LINGER} to {LONGEST_LINGER}, got {self.linger_seconds}")


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
    linger_seconds: int
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

    def create(self, account_id: int, url: str, name: str, settings: Settings | None = None, *, most: int | None = None) -> Stream:
        """Create an active stream, which waits for a worker. InvalidValueError: a text is blank or too long, or a setting out of range.

        StreamExistsError: an active stream of the account has that address, in any spelling. TooManyStreamsError: the account has `most`.
        """
        wanted = settings or Settings()
        wanted.check()
        row: dict[str, Any] = {
            "stream_id": generate_opaque_id(),
            "account_id": account_id,
            "url": _check_url(url),
            "name": _check_name(name),
        }
        with self._engine.begin() as connection:
            active = _lock_active(connection, account_id, row["url"])
            if most is not None and active >= most:
                raise TooManyStreamsError(f"the account has {active} active streams and may have {most}; stop one first")
            now = self._clock()
            connection.execute(stream.insert().values({**row, **asdict(wanted), "created_at": now}))
            record(connection, account_id, "stream.created", f"stream {row['stream_id']}", at=now, detail=row["name"])
        return self.get(account_id, row["stream_id"])

    def change(
        self,
        account_id: int,
        stream_id: str,
        *,
        url: str | None = None,
        name: str | None = None,
        detection_mode: str | None = None,
        linger_seconds: int | None = None,
    ) -> Stream:
        """Change what is not None; history and reports stay. The worker that has the stream follows within seconds.

        InvalidValueError, StreamExistsError: like `create`. StoppedStreamError: it was stopped.
        """
        values: dict[str, Any] = {"detection_mode": detection_mode, "linger_seconds": linger_seconds}
        values |= {"url": None if url is None else _check_url(url), "name": None if name is None else _check_name(name)}
        values = {column: value for column, value in values.items() if value is not None}
        with self._engine.begin() as connection:
            if url is not None:
                _lock_active(connection, account_id, values["url"], but=stream_id)
            found = _find_row(connection, account_id, stream_id, lock=True)
            if found.status != ACTIVE:
                raise StoppedStreamError("the stream was stopped; register it again")
            now = {"detection_mode": found.detection_mode, "linger_seconds": found.linger_seconds}
            Settings(**{column: values.get(column, value) for column, value in now.items()}).check()
            moves = values.get("url", found.url) != found.url
            if moves:
                # The state of the old address says nothing about the new one.
                values["runtime_status"] = STARTING
            if values:
                connection.execute(stream.update().where(stream.c.stream_id == stream_id).values(values))
                changed = ", ".join(sorted(set(values) - {"runtime_status"}))
                record(connection, account_id, "stream.changed", f"stream {stream_id}", at=self._clock(), detail=changed)
            if moves and found.runtime_status != STARTING:
                emit_status_changed(connection, stream_id, found.runtime_status, self._clock())
        return self.get(account_id, stream_id)

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
                record(connection, account_id, "stream.stopped", f"stream {stream_id}", at=now, detail=found.name)
        return self.get(account_id, stream_id)


def _check_url(url: str) -> str:
    if not url.strip() or len(url) > LONGEST_URL:
        raise InvalidValueError(f"a stream's address has 1 to {LONGEST_URL} characters, got {len(url)}")
    return url.strip()


def _check_name(name: str) -> str:
    if not name.strip() or len(name) > LONGEST_NAME:
        raise InvalidValueError(f"a stream's name has 1 to {LONGEST_NAME} characters, got {len(name)}")
    return name.strip()


def _lock_active(connection: Connection, account_id: int, url: str, *, but: str = "") -> int:
    """Return the number of active streams. StreamExistsError: one besides `but` has that address."""
    # The account's lock makes registrations count one after the other. On SQLite a transaction has the database to itself.
    connection.execute(select(account.c.account_id).where(account.c.account_id == account_id).with_for_update())
    is_active = (stream.c.account_id == account_id) & (stream.c.status == ACTIVE)
    active = connection.execute(select(stream.c.stream_id, stream.c.url).where(is_active)).all()
    # Compared here, because SQL cannot tell that two spellings are one address. An account has few active streams.
    key = build_address_key(url)
    same = next((one.stream_id for one in active if one.stream_id != but and build_address_key(one.url) == key), None)
    if same is not None:
        raise StreamExistsError(same)
    return len(active)


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
