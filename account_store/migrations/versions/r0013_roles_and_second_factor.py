"""Roles of members, second factors, one-time tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the tables. Existing users own their account."""
    op.add_column("dashboard_user", sa.Column("role", sa.String(20), nullable=False, server_default="owner"))
    op.add_column("dashboard_user", sa.Column("totp_secret", sa.Text))
    op.add_column("dashboard_user", sa.Column("totp_since", sa.DateTime))
    op.add_column("dashboard_user", sa.Column("totp_step", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "recovery_code",
        sa.Column("user_id", sa.Integer, sa.ForeignKey("dashboard_user.user_id"), primary_key=True),
        sa.Column("code_hash", sa.String(64), primary_key=True),
    )
    op.create_table(
        "one_time_token",
        sa.Column("token_id", sa.Integer, primary_key=True),
        sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("purpose", sa.String(20), nullable=False),
        sa.Column("user_id", sa.Integer, sa.ForeignKey("dashboard_user.user_id"), index=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("account.account_id"), index=True),
        sa.Column("email", sa.String(254)),
        sa.Column("role", sa.String(20)),
        sa.Column("expires_at", sa.DateTime, nullable=False, index=True),
    )
