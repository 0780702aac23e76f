"""Traces of streams: what a worker that takes over knows of the last seconds before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "stream_trace",
        sa.Column("stream_id", sa.String(36), sa.ForeignKey("stream.stream_id"), primary_key=True),
        sa.Column("first_ms", sa.BigInteger, nullable=False),
        sa.Column("heard", sa.LargeBinary, nullable=False),
    )
