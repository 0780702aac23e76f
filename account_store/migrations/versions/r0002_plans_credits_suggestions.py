"""Plans, credits, stored answers, suggestions, dashboard users."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Put accounts of the first version on the free plan; keep their keys."""
    _widen_accounts_and_keys()
    _create_credit_tables()
    _create_suggestions()
    _create_users()


def _widen_accounts_and_keys() -> None:
    # The defaults fill the rows of the first version: its accounts come to the free plan.
    for column in (
        sa.Column("plan", sa.String(40), nullable=False, server_default="free"),
        sa.Column("is_yearly", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("has_card", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("agreed_credits", sa.BigInteger),
        sa.Column("agreed_price_eur", sa.Numeric(10, 2)),
        sa.Column("agreed_requests_per_second", sa.Integer),
    ):
        op.add_column("account", column)
    op.add_column("api_key", sa.Column("label", sa.String(100), nullable=False, server_default=""))


def _build_account_id(**options: bool) -> sa.Column[int]:
    return sa.Column("account_id", sa.Integer, sa.ForeignKey("account.account_id"), nullable=False, **options)  # type: ignore[arg-type]


def _create_credit_tables() -> None:
    op.create_table(
        "credit_month",
        _build_account_id(primary_key=True),
        sa.Column("month", sa.String(7), primary_key=True),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.Column("allowed", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "credit_day",
        _build_account_id(primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("key_id", sa.Integer, primary_key=True),
        sa.Column("credits", sa.BigInteger, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "credit_reservation",
        sa.Column("reservation_id", sa.String(32), primary_key=True),
        _build_account_id(),
        sa.Column("key_id", sa.Integer, nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("credits", sa.BigInteger, nullable=False),
        sa.Column("created_unix", sa.BigInteger, nullable=False, index=True),
    )
    op.create_table(
        "replay",
        _build_account_id(primary_key=True),
        sa.Column("idempotency_key", sa.String(255), primary_key=True),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("granted", sa.BigInteger, nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("expires_unix", sa.BigInteger, nullable=False, index=True),
        sa.Column("status", sa.Integer),
        sa.Column("media_type", sa.String(100)),
        sa.Column("body", sa.LargeBinary),
    )


def _create_suggestions() -> None:
    op.create_table(
        "suggestion",
        sa.Column("suggestion_id", sa.Integer, primary_key=True),
        _build_account_id(index=True),
        sa.Column("track_id", sa.BigInteger, nullable=False, index=True),
        sa.Column("field", sa.String(40), nullable=False),
        sa.Column("value", sa.String(500), nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("source_url", sa.Text),
        sa.Column("status", sa.String(20), nullable=False, server_default="pending", index=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("decided_at", sa.DateTime),
        sa.Column("decided_by", sa.String(100)),
        sa.Column("decision_note", sa.Text),
    )


def _create_users() -> None:
    op.create_table(
        "dashboard_user",
        sa.Column("user_id", sa.Integer, primary_key=True),
        _build_account_id(index=True),
        sa.Column("email", sa.String(254), nullable=False, unique=True),
        sa.Column("password_hash", sa.String(200), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "dashboard_session",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("user_id", sa.Integer, sa.ForeignKey("dashboard_user.user_id"), nullable=False, index=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False, index=True),
    )
    op.create_table(
        "sign_in_failure",
        sa.Column("failure_id", sa.Integer, primary_key=True),
        sa.Column("subject", sa.String(300), nullable=False, index=True),
        sa.Column("failed_at", sa.DateTime, nullable=False),
    )
