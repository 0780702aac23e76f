"""Keys of releases and artists: barcodes, titles by artist, ids on platforms (table `entity_key`, schema.py).

Out of scope: keys of recordings (key_index.py), names (table `name`).
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.name_keys import build_name_key_expr
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.serving.lookup_keys import BARCODE, TITLE, hash_titles, number_entity_space
from catalog_store.sql_text import quote_list
from catalog_store.tables.files import read_blocks, render_sql_source

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import duckdb

_ROWS = 120_000


def write_entity_keys(file: sqlite3.Connection, tables: Mapping[str, Path], sorter: duckdb.DuckDBPyConnection, scratch: Path) -> None:
    """Fill `entity_key` of the base `file`. `sorter` sorts and spills, `scratch` is a folder for files that may stay there."""
    for space, query in _list_queries(tables, scratch):
        for batch in sorter.sql(query).to_arrow_reader(_ROWS):
            keys, ids = (pl.Series(column).to_list() for column in batch.columns)
            file.executemany("INSERT INTO entity_key VALUES (?, ?, ?)", zip(repeat(space), keys, ids))


def _list_queries(tables: Mapping[str, Path], scratch: Path) -> Iterator[tuple[int, str]]:
    """Yield (space, DuckDB query for its keys and ids, in key order)."""
    releases = render_sql_source(tables["release"])
    yield (
        number_entity_space(BARCODE),
        f"SELECT gtin::BIGINT AS key, release_id FROM {releases} WHERE gtin IS NOT NULL ORDER BY key, release_id",
    )
    # A catalog without releases has no such file.
    if titles := _write_titles(tables["release"], scratch):
        yield number_entity_space(TITLE), f"SELECT key, release_id FROM read_parquet({quote_list(titles)}) ORDER BY key, release_id"
    for kind in ("release", "artist"):
        sources = render_sql_source(tables[f"{kind}_source"])
        for platform in CATALOG_PLATFORMS:
            # A platform that gives only names has ids such as `name:<key>`, which no caller knows.
            is_asked = f"platform = '{platform}' AND NOT starts_with(external_id, 'name:')"
            query = f"SELECT external_id, {kind}_id FROM {sources} WHERE {is_asked} ORDER BY external_id, {kind}_id"
            yield number_entity_space(f"{kind} on {platform}"), query


def _write_titles(releases: Path, scratch: Path) -> list[Path]:
    """Write (key, release_id) of each release into files, and return them."""
    files = []
    for number, block in enumerate(read_blocks(releases, "release_id", "artist_id", "title", rows=_ROWS)):
        keyed = block.select("release_id", "artist_id", build_name_key_expr(pl.col("title")).alias("title_key"))
        files.append(scratch / f"titles-{number:06d}.parquet")
        keyed.select(pl.Series("key", hash_titles(keyed)), "release_id").write_parquet(files[-1], compression="lz4")
    return files
