"""The request log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "request_batch",
        sa.Column("batch_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("account.account_id"), nullable=False),
        sa.Column("last_unix", sa.BigInteger, nullable=False, index=True),
        sa.Column("request_count", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("request_batch_account", "request_batch", ["account_id", "batch_id", "request_count"])
    op.create_table(
        "request_hour",
        sa.Column("account_id", sa.Integer, sa.ForeignKey("account.account_id"), primary_key=True),
        sa.Column("hour_unix", sa.BigInteger, primary_key=True),
        sa.Column("key_id", sa.Integer, primary_key=True),
        sa.Column("method", sa.String(10), primary_key=True),
        sa.Column("route", sa.String(200), primary_key=True),
        sa.Column("status", sa.Integer, primary_key=True),
        sa.Column("code", sa.String(60), primary_key=True),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("credits", sa.BigInteger, nullable=False),
        sa.Column("microseconds", sa.BigInteger, nullable=False),
    )
    op.create_index("request_hour_time", "request_hour", ["hour_unix"])
