"""The hash of the columns that linkage reads of a source record. A record with last night's hash need not be linked again.

Columns that linkage does not read (popularity, dates) are left out, so a night of new chart positions links nothing. The hash is Polars'
own: another version of Polars may give other values, which costs one full night (see pipeline/linkage/incremental/night.py).
"""

from __future__ import annotations

import polars as pl

from catalog_store.record_keys.numbers import hash_columns

LINKED_COLUMNS = (
    "platform", "external_id", "title", "version", "artists", "artist_credit", "isrcs", "duration_ms", "release_id", "disc_number",
    "track_number", "heading", "repeats", "traits",
)  # fmt: skip
"""Columns of `source_recording`."""


def compute_content_hash() -> pl.Expr:
    """Return 64 bits over LINKED_COLUMNS of a staged row, including the record's own name: distinct records differ."""
    return hash_columns(LINKED_COLUMNS).reinterpret(signed=True)


def add_content_hash(records: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with column `content_hash`, computed where it is missing."""
    if "content_hash" not in records.columns:
        return records.with_columns(content_hash=compute_content_hash())
    if not records["content_hash"].null_count():
        return records
    return records.with_columns(content_hash=pl.coalesce("content_hash", compute_content_hash()))
