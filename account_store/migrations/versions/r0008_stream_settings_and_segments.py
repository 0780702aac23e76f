"""Detection settings of streams; what was heard while nothing known played."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the table."""
    op.add_column("stream", sa.Column("linger_seconds", sa.Integer, nullable=False, server_default="30"))
    op.create_table(
        "stream_segment",
        sa.Column("segment_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("stream_id", sa.String(36), sa.ForeignKey("stream.stream_id"), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("started_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("stream_segment_by_time", "stream_segment", ["stream_id", "started_ms"])
