"""The table of bulk jobs, beside the rest of the store's in `account_store/schema.py`.

A change here needs a revision in `migrations/versions`.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, String, Table, Text

from account_store.schema import UtcDateTime, metadata

bulk_job = Table(
    "bulk_job",
    metadata,
    Column("job_id", String(36), primary_key=True),
    Column("account_id", Integer, ForeignKey("account.account_id"), nullable=False),
    Column("key_id", Integer, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("input_type", String(40), nullable=False),
    Column("input_format", String(10), nullable=False),
    Column("result_format", String(10), nullable=False),
    # Null for an upload.
    Column("url", Text),
    Column("status", String(10), nullable=False),
    Column("row_count", Integer),
    Column("done_count", Integer, nullable=False, server_default="0"),
    Column("matched_count", Integer, nullable=False, server_default="0"),
    # Null until they are reserved; then the ledger's day, to which they go back.
    Column("reserved", BigInteger),
    Column("day", String(10)),
    # Snapshot ids, separated by blanks.
    Column("builds", Text, nullable=False, server_default=""),
    Column("error", Text),
    Column("created_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    Column("lease_ends_ms", BigInteger),
    Column("lease_token", Integer, nullable=False, server_default="0"),
    Column("turn_ms", BigInteger, nullable=False, server_default="0"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Index("bulk_job_account", "account_id", "created_at"),
    Index("bulk_job_status", "status", "turn_ms"),
)
"""`turn_ms`: when a worker had it last. `tries`: claims since its last progress."""
