"""Digests of the rows that belong to an id: two builds compare 8 bytes an id instead of all rows.

The digest of an id is the sum of the hashes of its rows, so it does not depend on their order. Two different sets of rows share a digest
with a chance of 1 in 2^64; then a night would carry over a row that a full build changes. Which rows decide about an id is the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.record_keys.numbers import hash_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

DIGEST = "digest"


def digest_rows(inputs: Mapping[str, pl.DataFrame], key: str, seed: int = 0) -> pl.DataFrame:
    """Return `key`, `digest` (u64) of each id that has a row in one of the frames, sorted by `key`.

    All frames have column `key`. Names and columns of the frames count, and `seed`: digests of two programs or settings differ.
    """
    hashed = [pl.DataFrame(schema={key: pl.Int64, DIGEST: pl.UInt64})]
    for number, (name, rows) in enumerate(sorted(inputs.items())):
        columns = [column for column in sorted(rows.columns) if column != key]
        text = pl.lit(f"{name} {columns}")
        # The key counts, too: without it two ids with equal rows would have one digest, and a swap of them would not show.
        hashes = hash_columns([text, key, *columns], (seed + number) % (1 << 64))
        hashed.append(rows.select(pl.col(key).cast(pl.Int64), hashes.alias(DIGEST)))
    return pl.concat(hashed).group_by(key).agg(pl.col(DIGEST).sum()).sort(key)


def find_equal_ids(one: pl.DataFrame, other: pl.DataFrame, key: str) -> pl.Series:
    """Return the ids, ascending, that have the same digest in both results of `digest_rows`."""
    return one.join(other, on=[key, DIGEST], how="semi", maintain_order="left")[key]
