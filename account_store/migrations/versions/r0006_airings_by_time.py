"""The index of airings by time holds what reports read of them: three months are read from it alone."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rebuild the index; it takes some seconds for each million airings."""
    op.drop_index("airing_by_time", "airing")
    op.create_index("airing_by_time", "airing", ["stream_id", "started_at", "airing_id", "recording_id", "started_ms", "duration_seconds"])
