"""The tables of the account store, as SQLAlchemy Core. A change here needs a revision in `migrations/versions`; a test keeps both equal.

Times are UTC to the second. `month` is `2026-11`, `day` is `2026-11-21`: text compares and sorts alike in both databases. Columns that the
ledger's raw statements write hold whole Unix seconds, for the same reason.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    TypeDecorator,
    false,
)

if TYPE_CHECKING:
    from sqlalchemy import Dialect


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC datetimes in Python, without a zone in the database (SQLite has none)."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Convert to the database: to the second, without a zone."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None, microsecond=0)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Convert from the database."""
        return None if value is None else value.replace(tzinfo=UTC)


metadata = MetaData()


def _build_account_id(**options: bool) -> Column[int]:
    return Column("account_id", Integer, ForeignKey("account.account_id"), nullable=False, **options)  # type: ignore[arg-type]


account = Table(
    "account",
    metadata,
    Column("account_id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("plan", String(40), nullable=False, server_default="free"),
    Column("is_yearly", Boolean, nullable=False, server_default=false()),
    Column("has_card", Boolean, nullable=False, server_default=false()),
    # Null unless the figures of the plan are agreed with the account.
    Column("agreed_credits", BigInteger),
    Column("agreed_price_eur", Numeric(10, 2)),
    Column("agreed_requests_per_second", Integer),
)

api_key = Table(
    "api_key",
    metadata,
    Column("key_id", Integer, primary_key=True),
    _build_account_id(index=True),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("prefix", String(12), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("last_used_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Column("label", String(100), nullable=False, server_default=""),
    # Separated by blanks; null for all.
    Column("scopes", String(200)),
    Column("expires_at", UtcDateTime),
    # Separated by blanks; empty for all addresses.
    Column("networks", Text, nullable=False, server_default=""),
    Column("is_test", Boolean, nullable=False, server_default=false()),
)

# The row of a month is what the ledger locks. Its primary key is what the ledger's upserts conflict on.
credit_month = Table(
    "credit_month",
    metadata,
    _build_account_id(primary_key=True),
    Column("month", String(7), primary_key=True),
    Column("used", BigInteger, nullable=False),
    Column("allowed", BigInteger, nullable=False),
)

credit_day = Table(
    "credit_day",
    metadata,
    _build_account_id(primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("key_id", Integer, primary_key=True),
    Column("credits", BigInteger, nullable=False),
    Column("requests", BigInteger, nullable=False),
)

credit_reservation = Table(
    "credit_reservation",
    metadata,
    Column("reservation_id", String(32), primary_key=True),
    _build_account_id(),
    Column("key_id", Integer, nullable=False),
    Column("day", String(10), nullable=False),
    Column("credits", BigInteger, nullable=False),
    Column("created_unix", BigInteger, nullable=False, index=True),
)

replay = Table(
    "replay",
    metadata,
    _build_account_id(primary_key=True),
    Column("idempotency_key", String(255), primary_key=True),
    Column("request_hash", String(64), nullable=False),
    Column("granted", BigInteger, nullable=False),
    Column("day", String(10), nullable=False),
    Column("expires_unix", BigInteger, nullable=False, index=True),
    # From here on: the stored answer, written after the charge (stored_answers.py). Null until then.
    Column("status", Integer),
    Column("media_type", String(100)),
    Column("body", LargeBinary),
    Column("build", String(200)),
)

suggestion = Table(
    "suggestion",
    metadata,
    Column("suggestion_id", Integer, primary_key=True),
    _build_account_id(index=True),
    Column("track_id", BigInteger, nullable=False, index=True),
    Column("field", String(40), nullable=False),
    Column("value", String(500), nullable=False),
    Column("note", Text),
    Column("source_url", Text),
    Column("status", String(20), nullable=False, server_default="pending", index=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("decided_at", UtcDateTime),
    Column("decided_by", String(100)),
    Column("decision_note", Text),
)

audit_entry = Table(
    "audit_entry",
    metadata,
    Column("entry_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    _build_account_id(),
    Column("happened_at", UtcDateTime, nullable=False),
    Column("actor", String(300), nullable=False),
    Column("action", String(40), nullable=False),
    Column("subject", String(300), nullable=False),
    Column("detail", Text, nullable=False),
    Index("audit_entry_account", "account_id", "entry_id"),
)

request_batch = Table(
    "request_batch",
    metadata,
    Column("batch_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    _build_account_id(),
    Column("last_unix", BigInteger, nullable=False, index=True),
    Column("request_count", Integer, nullable=False),
    # Compressed; request_log.py describes it.
    Column("body", LargeBinary, nullable=False),
    Index("request_batch_account", "account_id", "batch_id", "request_count"),
)

request_hour = Table(
    "request_hour",
    metadata,
    _build_account_id(primary_key=True),
    Column("hour_unix", BigInteger, primary_key=True),
    Column("key_id", Integer, primary_key=True),
    Column("method", String(10), primary_key=True),
    Column("route", String(200), primary_key=True),
    Column("status", Integer, primary_key=True),
    # Empty without an error.
    Column("code", String(60), primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("credits", BigInteger, nullable=False),
    Column("microseconds", BigInteger, nullable=False),
    Index("request_hour_time", "hour_unix"),
)

dashboard_user = Table(
    "dashboard_user",
    metadata,
    Column("user_id", Integer, primary_key=True),
    _build_account_id(index=True),
    Column("email", String(254), nullable=False, unique=True),
    Column("password_hash", String(200), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("role", String(20), nullable=False, server_default="owner"),
    # Sealed. It counts from `totp_since`; null until a first code has confirmed it.
    Column("totp_secret", Text),
    Column("totp_since", UtcDateTime),
    # The time step of the last accepted code: no code is accepted twice.
    Column("totp_step", BigInteger, nullable=False, server_default="0"),
)

recovery_code = Table(
    "recovery_code",
    metadata,
    Column("user_id", Integer, ForeignKey("dashboard_user.user_id"), primary_key=True),
    Column("code_hash", String(64), primary_key=True),
)

one_time_token = Table(
    "one_time_token",
    metadata,
    Column("token_id", Integer, primary_key=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("purpose", String(20), nullable=False),
    Column("user_id", Integer, ForeignKey("dashboard_user.user_id"), index=True),
    # The account, e-mail and role of an invitation.
    Column("account_id", Integer, ForeignKey("account.account_id"), index=True),
    Column("email", String(254)),
    Column("role", String(20)),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
)

dashboard_session = Table(
    "dashboard_session",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("user_id", Integer, ForeignKey("dashboard_user.user_id"), nullable=False, index=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
)

sign_in_failure = Table(
    "sign_in_failure",
    metadata,
    Column("failure_id", Integer, primary_key=True),
    # `email:...`, `address:...` or `sign-up:...` (users.py).
    Column("subject", String(300), nullable=False, index=True),
    Column("failed_at", UtcDateTime, nullable=False),
)
