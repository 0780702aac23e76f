"""Rights of keys, and the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table. Existing keys keep all rights."""
    op.add_column("api_key", sa.Column("scopes", sa.String(200)))
    op.add_column("api_key", sa.Column("expires_at", sa.DateTime))
    op.add_column("api_key", sa.Column("networks", sa.Text, nullable=False, server_default=""))
    op.add_column("api_key", sa.Column("is_test", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "audit_entry",
        sa.Column("entry_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("account.account_id"), nullable=False),
        sa.Column("happened_at", sa.DateTime, nullable=False),
        sa.Column("actor", sa.String(300), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(300), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("audit_entry_account", "audit_entry", ["account_id", "entry_id"])
