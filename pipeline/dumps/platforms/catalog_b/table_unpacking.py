"""Unpacking of a dump in one pass: each wanted table becomes Parquet in a work folder, unreadable lines become rejects.

Out of scope: where the streams come from (`archives.py`), what the tables mean (the modules named after what they stage).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import polars as pl

from pipeline.dumps.errors import DumpError
from pipeline.dumps.platforms.catalog_b.archives import Delivery, read_delivery
from pipeline.dumps.platforms.catalog_b.table_layouts import MEMBERS, REQUIRED, Member
from pipeline.dumps.readers.copy_text import read_copy_text

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

ROWS_PER_PART = 500_000
_LAYOUT_SAMPLE = 100
"""Lines after which a table without one of the expected number of cells is not dirty: its layout has changed."""


def unpack(delivery: Delivery, dump: Path, work: Path, out: StagingWriter) -> None:
    """Write `<work>/<table>/part-*.parquet` for every table of MEMBERS, also empty ones. Raises DumpError for an unusable dump."""
    done: dict[str, int] = {}
    for table, stream, source in read_delivery(delivery, MEMBERS.__contains__, out.report):
        # An archive may hold a name twice. The second would overwrite parts of the first.
        if table in done:
            raise DumpError(f"{dump}: the delivery holds {source} twice; deliver each table once")
        done[table] = _unpack_member(MEMBERS[table], stream, source, work / table, out)
        out.report(f"{source}: {done[table]:,} rows")
    out.use(*delivery.files)
    out.expect_tables("tables", done, MEMBERS)
    # The exporter leaves out tables without rows, so an absent table alone is not an error.
    empty = [table for table in REQUIRED if not done.get(table)]
    if empty:
        raise DumpError(f"{dump}: no row in {', '.join(f'mbdump/{table}' for table in empty)}; every export has rows there: fetch it again")
    for table in MEMBERS.keys() - done.keys():
        _write_part(pl.DataFrame(schema=MEMBERS[table].schema), work / table, 0)


def _unpack_member(member: Member, stream: BinaryIO, source: str, folder: Path, out: StagingWriter) -> int:
    waiting: list[pl.DataFrame] = []
    rows = waiting_rows = parts = faults = 0
    for block in read_copy_text(stream, member.columns, member.wanted, source):
        faults += block.faults.height
        # Faults before the first good row only: later ones are dirt and become rejects.
        if rows == 0 and waiting_rows == 0 and block.frame.is_empty() and faults >= _LAYOUT_SAMPLE:
            raise DumpError(
                f"{source}: none of the first {faults} lines has {len(member.columns)} cells ({block.faults['excerpt'][0]!r}): "
                "the layout has changed; compare it with table_layouts.py"
            )
        _reject(member, source, block.faults, out)
        waiting.append(block.frame)
        waiting_rows += block.frame.height
        if waiting_rows >= ROWS_PER_PART:
            _write_part(pl.concat(waiting), folder, parts)
            parts, rows, waiting, waiting_rows = parts + 1, rows + waiting_rows, [], 0
    if waiting_rows or parts == 0:
        _write_part(pl.concat(waiting) if waiting else pl.DataFrame(schema=member.schema), folder, parts)
    return rows + waiting_rows


def _write_part(frame: pl.DataFrame, folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(folder / f"part-{number:05d}.parquet", compression="zstd", compression_level=1)


def _reject(member: Member, source: str, faults: pl.DataFrame, out: StagingWriter) -> None:
    if faults.is_empty():
        return
    if member.is_record:
        out.count_read(member.entity, faults.height)
    out.write_rejects(
        faults.select(
            "reason",
            "excerpt",
            entity=pl.lit(member.entity),
            severity=pl.lit("row" if member.is_record else "field"),
            source_file=pl.lit(source),
            place=pl.format("line {}", "line"),
            field=pl.lit(None if member.is_record else member.table, dtype=pl.String),
        )
    )
