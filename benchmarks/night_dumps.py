"""Dumps of a night, and what staging them costs: one record of 333 has another title, in the form of each platform.

`benchmarks.nights` changes staged tables, because only these can change in every way that linkage must notice. Staging does not see what
a change means, so its cost is measured here, on dumps of the same size with the same share of changed records.
"""

from __future__ import annotations

import bz2
import gzip
import io
import re
import shutil
import tarfile
from pathlib import Path

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS, WORKS
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.engine.usage import measure_usage

STEP = 333
"""Records of which one is changed: 0.3 %."""
_TITLE = re.compile(rb'("(?:title|name)":")')
_ELEMENT = re.compile(rb"(<(?:title|name)>)")
_CELL = re.compile(rb"(\t)(?=[A-Z]{2}[^\t]* )")
_THIRD_CELL = re.compile(rb"^([0-9]+\t[^\t]+\t)")


def change_dumps(source: Path, target: Path, night: int) -> None:
    """Write the dumps of a night: those of `source`, with one record of STEP changed, others each night."""
    shutil.rmtree(target, ignore_errors=True)
    # A manifest or a list of checksums would refuse the changed files.
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("truth", "*Manifest*", "*SUM*"))
    for path in sorted(target.rglob("*")):
        if path.suffix == ".parquet":
            _change_parquet(path, night)
        elif path.name.endswith((".ndjson.gz", ".xml.gz")):
            pattern = _TITLE if "json" in path.name else _ELEMENT
            path.write_bytes(gzip.compress(_change_records(gzip.decompress(path.read_bytes()), pattern, night), 6))
        elif path.suffix == ".tsv":
            path.write_bytes(_change_records(path.read_bytes(), _CELL, night))
        elif path.name == "mbdump.tar.bz2":
            _change_archive(path, night)


def _change_records(raw: bytes, pattern: re.Pattern[bytes], night: int) -> bytes:
    """Put a word behind what `pattern` finds in one line of STEP."""
    lines = raw.split(b"\n")
    for index in range(night % STEP, len(lines), STEP):
        lines[index] = pattern.sub(rb"\1New ", lines[index], count=1)
    return b"\n".join(lines)


def _change_parquet(path: Path, night: int) -> None:
    frame = pl.read_parquet(path)
    name = next((name for name in ("name", "nameDefault") if frame.schema.get(name) == pl.String), None)
    if name:
        is_drawn = pl.int_range(pl.len()) % STEP == night % STEP
        frame.with_columns(pl.when(is_drawn).then(pl.lit("New ") + pl.col(name)).otherwise(name).alias(name)).write_parquet(path)


def _change_archive(path: Path, night: int) -> None:
    """Change the recordings in an archive of tables: their name is the third cell."""
    changed = io.BytesIO()
    with tarfile.open(path) as archive, tarfile.open(fileobj=changed, mode="w") as copy:
        for member in archive:
            file = archive.extractfile(member)
            content = file.read() if file else b""
            if member.name in ("mbdump/recording", "mbdump/release"):
                content = _change_records(content, _THIRD_CELL, night)
                member.size = len(content)
            copy.addfile(member, io.BytesIO(content))
    path.write_bytes(bz2.compress(changed.getvalue()))


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
