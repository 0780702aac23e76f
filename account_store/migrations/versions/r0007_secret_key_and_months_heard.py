"""Store the key that seals secrets, and the months in which a stream was heard.

The months before this revision are not known. A stream that was ever heard counts as heard in all of them, as it was billed.
"""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and fill the second."""
    op.create_table(
        "secret_key",
        sa.Column("purpose", sa.String(20), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("noted_at", sa.DateTime, nullable=False),
    )
    heard = op.create_table(
        "stream_heard",
        sa.Column("stream_id", sa.String(36), sa.ForeignKey("stream.stream_id"), primary_key=True),
        sa.Column("month", sa.String(7), primary_key=True),
    )
    stream = sa.table(
        "stream", sa.column("stream_id", sa.String), sa.column("created_at", sa.DateTime), sa.column("listened_ms", sa.BigInteger)
    )
    connection = op.get_bind()
    known = connection.execute(sa.select(stream).where(stream.c.listened_ms.is_not(None))).all()
    rows = [{"stream_id": row.stream_id, "month": month} for row in known for month in _list_months(row.created_at, row.listened_ms)]
    if rows:
        connection.execute(heard.insert(), rows)


def _list_months(created_at: datetime, listened_ms: int) -> list[str]:
    last = max(datetime.fromtimestamp(listened_ms / 1000, UTC).replace(tzinfo=None), created_at)
    count = 12 * (last.year - created_at.year) + last.month - created_at.month + 1
    numbers = [12 * created_at.year + created_at.month - 1 + place for place in range(count)]
    return [f"{number // 12}-{number % 12 + 1:02d}" for number in numbers]
