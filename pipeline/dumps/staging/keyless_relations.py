"""Rows of tables that only relate others, without a key by which they could be joined. They have no id, so one reject counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    from pipeline.dumps.staging.staging_writer import StagingWriter


def reject_keyless_rows(
    connection: duckdb.DuckDBPyConnection, entity: str, table: str, keys: Mapping[str, str], out: StagingWriter
) -> None:
    """Reject the rows of `table` that lack one of `keys`: column -> SQL of the key in it, null where there is none."""
    counts = ", ".join(f"count(*) - count({sql})" for sql in keys.values())
    for key, lost in zip(keys, connection.execute(f"SELECT {counts} FROM {table}").fetchall()[0], strict=True):
        out.reject_keyless(entity, table, key, lost)
