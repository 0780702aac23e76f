"""What of a source record linkage reads, and a hash of it: a record whose hash is that of last night need not be linked again.

Columns that linkage does not read (popularity, dates) are left out, so that a night of new chart places links nothing. The hash is
Polars' own: another version of Polars may hash otherwise, which costs one night in full (see pipeline/linkage/incremental/night.py).
"""

from __future__ import annotations

import polars as pl

from catalog_store.record_keys.numbers import hashed

LINKED_COLUMNS = ("platform", "external_id", "title", "version", "artists", "artist_credit", "isrcs", "duration_ms", "release_id", "traits")
"""Columns of `source_recording`."""


def content_hash() -> pl.Expr:
    """64 bits over LINKED_COLUMNS of a staged row, the record's own name among them: distinct records differ."""
    return hashed(LINKED_COLUMNS).reinterpret(signed=True)


def with_content_hash(records: pl.DataFrame) -> pl.DataFrame:
    """The rows with column `content_hash`, computed where it is missing."""
    if "content_hash" not in records.columns:
        return records.with_columns(content_hash=content_hash())
    if not records["content_hash"].null_count():
        return records
    return records.with_columns(content_hash=pl.coalesce("content_hash", content_hash()))
