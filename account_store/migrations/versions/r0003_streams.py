"""Streams, their airings (and those of settled days, packed) and gaps, the workers that monitor them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the five tables."""
    _create_streams()
    _create_airings()
    op.create_table(
        "stream_gap",
        sa.Column("gap_id", _ROW_NUMBER, primary_key=True),
        _build_stream_id(),
        sa.Column("started_at", sa.DateTime, nullable=False),
        sa.Column("ended_at", sa.DateTime),
        sa.Column("cause", sa.String(20), nullable=False),
        sa.Column("detail", sa.Text),
    )
    op.create_index("stream_gap_by_time", "stream_gap", ["stream_id", "started_at"])
    op.create_table(
        "airplay_day",
        sa.Column("stream_id", sa.String(36), sa.ForeignKey("stream.stream_id"), primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("airings", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "monitor_worker",
        sa.Column("worker_id", sa.String(200), primary_key=True),
        sa.Column("capacity", sa.Integer, nullable=False),
        sa.Column("started_at", sa.DateTime, nullable=False),
        sa.Column("alive_until_ms", sa.BigInteger, nullable=False),
    )


def _build_stream_id() -> sa.Column[str]:
    return sa.Column("stream_id", sa.String(36), sa.ForeignKey("stream.stream_id"), nullable=False)


def _create_streams() -> None:
    op.create_table(
        "stream",
        sa.Column("stream_id", sa.String(36), primary_key=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("account.account_id"), nullable=False, index=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("status", sa.String(20), nullable=False, server_default="active", index=True),
        sa.Column("detection_mode", sa.String(20), nullable=False, server_default="balanced"),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("stopped_at", sa.DateTime),
        sa.Column("runtime_status", sa.String(20), nullable=False, server_default="starting"),
        sa.Column("last_error", sa.Text),
        sa.Column("last_error_at", sa.DateTime),
        sa.Column("last_recognized_at", sa.DateTime),
        sa.Column("audio_format", sa.String(100)),
        sa.Column("listened_ms", sa.BigInteger),
        sa.Column("worker_id", sa.String(200), index=True),
        sa.Column("lease_token", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("lease_ends_ms", sa.BigInteger),
    )


def _create_airings() -> None:
    op.create_table(
        "airing",
        sa.Column("airing_id", _ROW_NUMBER, primary_key=True),
        _build_stream_id(),
        sa.Column("recording_id", sa.BigInteger, nullable=False),
        sa.Column("isrc", sa.String(12)),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("artist", sa.Text, nullable=False),
        sa.Column("track_seconds", sa.Integer),
        sa.Column("started_at", sa.DateTime, nullable=False),
        sa.Column("ended_at", sa.DateTime),
        sa.Column("duration_seconds", sa.Integer, nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("detection_count", sa.Integer, nullable=False),
        sa.Column("anchor_ms", sa.BigInteger, nullable=False),
        sa.Column("started_ms", sa.BigInteger, nullable=False),
        sa.Column("heard_ms", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("stream_id", "recording_id", "anchor_ms", name="airing_once"),
    )
    op.create_index("airing_by_time", "airing", ["stream_id", "started_at", "airing_id"])
    is_open = sa.text("ended_at IS NULL")
    op.create_index("airing_open", "airing", ["stream_id"], unique=True, sqlite_where=is_open, postgresql_where=is_open)
