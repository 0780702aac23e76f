"""The tables of streams, airings and monitor workers, beside the rest of the store's in `account_store/schema.py`.

A change here needs a revision in `migrations/versions`. Columns that end in `_ms` hold Unix milliseconds. Workers compare them;
reports show whole seconds. Out of scope: tables of webhooks.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, LargeBinary, String, Table, Text, UniqueConstraint, text

from account_store.schema import UtcDateTime, metadata

_ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""A key that the database counts up; SQLite does so for INTEGER only, which holds 64 bits there."""

stream = Table(
    "stream",
    metadata,
    Column("stream_id", String(36), primary_key=True),
    Column("account_id", Integer, ForeignKey("account.account_id"), nullable=False, index=True),
    Column("url", Text, nullable=False),
    Column("name", String(200), nullable=False),
    Column("status", String(20), nullable=False, server_default="active", index=True),
    Column("detection_mode", String(20), nullable=False, server_default="balanced"),
    Column("linger_seconds", Integer, nullable=False, server_default="30"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("stopped_at", UtcDateTime),
    Column("runtime_status", String(20), nullable=False, server_default="starting"),
    Column("last_error", Text),
    Column("last_error_at", UtcDateTime),
    Column("last_recognized_at", UtcDateTime),
    Column("audio_format", String(100)),
    Column("listened_ms", BigInteger),
    Column("worker_id", String(200), index=True),
    Column("lease_token", BigInteger, nullable=False, server_default="0"),
    Column("lease_ends_ms", BigInteger),
)
"""`listened_ms`: end of the sound that was examined. The last three columns are the lease: its worker, its number, its end."""

airing = Table(
    "airing",
    metadata,
    Column("airing_id", _ROW_NUMBER, primary_key=True),
    Column("stream_id", String(36), ForeignKey("stream.stream_id"), nullable=False),
    Column("recording_id", BigInteger, nullable=False),
    Column("isrc", String(12)),
    Column("title", Text, nullable=False),
    Column("artist", Text, nullable=False),
    Column("track_seconds", Integer),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("duration_seconds", Integer, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("detection_count", Integer, nullable=False),
    Column("anchor_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("heard_ms", BigInteger, nullable=False),
    # This and `airing_open` hold whatever workers believe: one play is one row, and one airing of a stream is open.
    UniqueConstraint("stream_id", "recording_id", "anchor_ms", name="airing_once"),
    # All that a report of months reads: SQLite answers it from the index alone.
    Index("airing_by_time", "stream_id", "started_at", "airing_id", "recording_id", "started_ms", "duration_seconds"),
    Index("airing_open", "stream_id", unique=True, sqlite_where=text("ended_at IS NULL"), postgresql_where=text("ended_at IS NULL")),
)
"""One play of one recording, as the catalog described it at the time. `anchor_ms`: when its first sample was or would have been on the air;
`heard_ms`: until when it was heard. `ended_at` is null while it may go on; `duration_seconds` is the length so far, then the length. The
index by time has all that a report reads."""

stream_gap = Table(
    "stream_gap",
    metadata,
    Column("gap_id", _ROW_NUMBER, primary_key=True),
    Column("stream_id", String(36), ForeignKey("stream.stream_id"), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("cause", String(20), nullable=False),
    Column("detail", Text),
    Index("stream_gap_by_time", "stream_id", "started_at"),
)
"""Time of an active stream that nobody listened to: `source` (the stream was away) or `monitor` (we were). Open while it lasts."""

stream_segment = Table(
    "stream_segment",
    metadata,
    Column("segment_id", _ROW_NUMBER, primary_key=True),
    Column("stream_id", String(36), ForeignKey("stream.stream_id"), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger, nullable=False),
    Index("stream_segment_by_time", "stream_id", "started_ms"),
)
"""Sound that belonged to no known track when it was heard: `talk`, `music_unknown` or `silence`. Readers cut airings out (segments.py)."""

stream_heard = Table(
    "stream_heard",
    metadata,
    Column("stream_id", String(36), ForeignKey("stream.stream_id"), primary_key=True),
    Column("month", String(7), primary_key=True),
)
"""The calendar months (UTC) in which at least a second of the stream's sound was received: only those are billed."""

airplay_day = Table(
    "airplay_day",
    metadata,
    Column("stream_id", String(36), ForeignKey("stream.stream_id"), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("airings", LargeBinary, nullable=False),
)
"""The airings that began on a settled UTC day, packed for reports of months (report.py has the layout). A missing row is rebuilt from
`airing`."""

stream_trace = Table(
    "stream_trace",
    metadata,
    Column("stream_id", String(36), ForeignKey("stream.stream_id"), primary_key=True),
    Column("first_ms", BigInteger, nullable=False),
    Column("heard", LargeBinary, nullable=False),
)
"""The last sound that belongs to no airing yet (traces.py): the time when its first sample was on the air, and its fingerprint."""

monitor_worker = Table(
    "monitor_worker",
    metadata,
    Column("worker_id", String(200), primary_key=True),
    Column("capacity", Integer, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("alive_until_ms", BigInteger, nullable=False),
)
"""The monitor workers that run, so that they can share the streams by their capacities."""
