"""Bulk jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "bulk_job",
        sa.Column("job_id", sa.String(36), primary_key=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("account.account_id"), nullable=False),
        sa.Column("key_id", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("input_type", sa.String(40), nullable=False),
        sa.Column("input_format", sa.String(10), nullable=False),
        sa.Column("result_format", sa.String(10), nullable=False),
        sa.Column("url", sa.Text),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("row_count", sa.Integer),
        sa.Column("done_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("matched_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("reserved", sa.BigInteger),
        sa.Column("day", sa.String(10)),
        sa.Column("builds", sa.Text, nullable=False, server_default=""),
        sa.Column("error", sa.Text),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("finished_at", sa.DateTime),
        sa.Column("lease_ends_ms", sa.BigInteger),
        sa.Column("lease_token", sa.Integer, nullable=False, server_default="0"),
        sa.Column("turn_ms", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
    )
    op.create_index("bulk_job_account", "bulk_job", ["account_id", "created_at"])
    op.create_index("bulk_job_status", "bulk_job", ["status", "turn_ms"])
