"""The tables of the account store, as SQLAlchemy Core: SQLite by default, PostgreSQL by URL.

Times are UTC without zone, seconds. Keys are stored as hashes only.
"""

from __future__ import annotations

from sqlalchemy import Column, DateTime, ForeignKey, Integer, MetaData, String, Table

metadata = MetaData()

account = Table(
    "account",
    metadata,
    Column("account_id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("created_at", DateTime, nullable=False),
)

api_key = Table(
    "api_key",
    metadata,
    Column("key_id", Integer, primary_key=True),
    Column("account_id", Integer, ForeignKey("account.account_id"), nullable=False, index=True),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("prefix", String(12), nullable=False),
    Column("created_at", DateTime, nullable=False),
    Column("last_used_at", DateTime),
    Column("revoked_at", DateTime),
)
