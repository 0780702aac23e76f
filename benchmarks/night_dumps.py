"""Dumps of a night, and what staging them costs: one record of 333 has another title, in the form of each platform.

`benchmarks.nights` changes staged tables, because only these can change in every way that linkage must notice. Staging does not see what
a change means, so its cost is measured here, on dumps of the same size with the same share of changed records.
"""

from __future__ import annotations

import gzip
import re
import shutil
import tarfile
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from catalog_store.platforms import CATALOG_PLATFORMS, WORKS
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.engine.usage import measure_usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STEP = 333
"""Records of which one is changed: 0.3 %."""
_TITLE = re.compile(rb'("(?:title|name)":")')
_ELEMENT = re.compile(rb"(<(?:title|name)>)")
_CELL = re.compile(rb"(\t)(?=[A-Z]{2}[^\t]* )")
_THIRD_CELL = re.compile(rb"^([0-9]+\t[^\t]+\t)")


def change_dumps(source: Path, target: Path, night: int) -> None:
    """Write the dumps of a night: those of `source`, with one record of STEP changed, others each night.

    Files are read in streams, since a dump of 10 million recordings does not fit into memory.
    """
    shutil.rmtree(target, ignore_errors=True)
    # A manifest or a list of checksums would refuse the changed files.
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("truth", "*Manifest*", "*SUM*"))
    for path in sorted(path for path in target.rglob("*") if path.is_file()):
        changed = path.with_name(f"{path.name}.changed")
        if path.suffix == ".parquet":
            _change_parquet(path, changed, night)
        elif path.name.endswith((".ndjson.gz", ".xml.gz")):
            pattern = _TITLE if "json" in path.name else _ELEMENT
            with gzip.open(path) as lines, gzip.open(changed, "wb", 6) as output:
                output.writelines(_change_records(lines, pattern, night))
        elif path.suffix == ".tsv":
            with path.open("rb") as lines, changed.open("wb") as output:
                output.writelines(_change_records(lines, _CELL, night))
        elif path.name == "mbdump.tar.bz2":
            _change_archive(path, changed, night)
        if changed.exists():
            changed.replace(path)


def _change_records(lines: Iterable[bytes], pattern: re.Pattern[bytes], night: int) -> Iterator[bytes]:
    """Put a word behind what `pattern` finds in one line of STEP."""
    for index, line in enumerate(lines):
        yield pattern.sub(rb"\1New ", line, count=1) if index % STEP == night % STEP else line


def _change_parquet(path: Path, changed: Path, night: int) -> None:
    with pq.ParquetFile(path) as file:
        columns = {field.name: column for column, field in enumerate(file.schema_arrow) if pa.types.is_string(field.type)}
        name = next((name for name in ("name", "nameDefault") if name in columns), None)
        if name is None:
            return
        first = 0
        with pq.ParquetWriter(changed, file.schema_arrow, compression="zstd") as output:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                texts = pl.Series("text", table[name])
                is_drawn = pl.int_range(first, first + len(texts)) % STEP == night % STEP
                texts = texts.to_frame().select(pl.when(is_drawn).then(pl.lit("New ") + pl.col("text")).otherwise("text")).to_series()
                output.write_table(table.set_column(columns[name], name, texts.to_arrow().cast(pa.string())))
                first += len(texts)


def _change_archive(path: Path, changed: Path, night: int) -> None:
    """Change the recordings in an archive of tables: their name is the third cell."""
    with tarfile.open(path, "r|bz2") as archive, tarfile.open(changed, "w:bz2") as copy:
        for member in archive:
            file = archive.extractfile(member)
            if file is None or member.name not in ("mbdump/recording", "mbdump/release"):
                copy.addfile(member, file)
                continue
            # A member states its size before its content, so the changed records wait in a file.
            with TemporaryFile(dir=path.parent) as records:
                records.writelines(_change_records(file, _THIRD_CELL, night))
                member.size = records.tell()
                records.seek(0)
                copy.addfile(member, records)


def stage_all(dumps: str, staging: str) -> dict[str, float]:
    """Stage the dumps of all platforms over what is staged in `staging`, and return the CPU seconds of each."""
    cost = {}
    for platform in (*CATALOG_PLATFORMS, WORKS):
        with measure_usage() as usage:
            stage_dump(platform, next((Path(dumps) / platform).iterdir()), Path(staging) / platform)
        cost[platform] = usage.cpu_seconds
    return cost


def find_differing_parts(one: Path, other: Path) -> list[str]:
    """Return the parts of staging tables that do not have the same bytes in both folders."""
    parts = [{str(path.relative_to(folder)): path for path in folder.rglob("part-*.parquet")} for folder in (one, other)]
    names = sorted(parts[0].keys() | parts[1].keys())
    return [name for name in names if len({found[name].read_bytes() if name in found else b"" for found in parts}) > 1]
