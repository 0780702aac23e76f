from __future__ import annotations

import polars as pl

from catalog_store.frame_texts import copy_texts


def test_copied_rows_do_not_keep_the_texts_of_their_block() -> None:
    titles = [f"a title too long to be part of a view {number}" for number in range(10_000)]
    # Texts inside of lists and structs, too.
    block = pl.DataFrame({"title": titles, "artists": [[{"name": title}] for title in titles], "traits": [[title] for title in titles]})
    rows = block.filter(pl.col("title").str.ends_with("1234")).with_columns(version=pl.lit(None, dtype=pl.String))
    copied = copy_texts(rows)
    assert copied.equals(rows)
    assert copied.schema == rows.schema
    assert measure_buffers(rows) > 100_000
    assert measure_buffers(copied) < 10_000


def test_copy_of_no_rows_has_their_columns() -> None:
    rows = pl.DataFrame(schema={"title": pl.String, "rank": pl.Int64})
    assert copy_texts(rows).schema == rows.schema


def measure_buffers(frame: pl.DataFrame) -> int:
    """Return the bytes that a frame keeps in memory, seen or not."""
    return frame.to_arrow(compat_level=pl.CompatLevel.newest()).get_total_buffer_size()
