"""Simulated worlds for the linkage benchmarks: dumps read by our adapters, the truth beside them, our keys for a peer.

An existing world in the folder is reused. The folder's name holds size and seed, but not the version of the code.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS, SOURCES
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, list_parts, read_table, scan_table
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.normal_forms import collect_names, hash_bucket, normalise
from pipeline.paths import BuildPaths

ROOT = Path(__file__).resolve().parent.parent
DURATION_SLOT_MS = 5_000
"""Width of the bands of duration that a peer blocks on."""
PREFIX_CHARACTERS = 4
ROWS_PER_BUCKET = 200_000
"""The number of records that our own linkage holds at once."""


def stage_world(work: Path, recordings: int, seed: int, dumps: Path | None = None, world: str = "plain") -> BuildPaths:
    """Return the catalog root of a staged world below `work`; simulated unless `dumps` (a folder of `pipeline simulate`) is given.

    `world` is the kind that is simulated, `plain` or `harsh`.
    """
    root = work / f"{world.replace('plain', 'world')}-{recordings}-{seed}"
    paths = BuildPaths(root / "catalog")
    folder = dumps or root / "dumps"
    if not folder.exists():
        command = [sys.executable, "-m", "pipeline", "simulate", "--recordings", str(recordings), "--seed", str(seed), "--out", str(folder)]
        command += ["--world", world]
        subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    link = root / "truth"
    if not link.exists():
        root.mkdir(parents=True, exist_ok=True)
        link.symlink_to((folder / "truth").resolve())
    for platform in SOURCES:
        if not paths.staging(platform).exists():
            stage_dump(platform, max((folder / platform).iterdir()), paths.staging(platform))
    return paths


def read_truth(paths: BuildPaths) -> pl.DataFrame:
    """Return platform, external_id, true_recording_id."""
    found = pl.read_parquet(list_parquet_files(paths.root.parent / "truth" / "recording"))
    return found.select("platform", "external_id", "true_recording_id")


def list_parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder."""
    return sorted(folder.glob("part-*.parquet"))


def read_whole_table(paths: BuildPaths, name: str) -> pl.DataFrame:
    """Read a staging table of all platforms into memory."""
    return pl.concat([read_table(TABLES[name], folder) for folder in paths.staged(name, CATALOG_PLATFORMS)])


def write_keys(paths: BuildPaths, out: Path) -> int:
    """Write the input of a peer, a row per record, numbered by `record`: our keys, and the columns to block on, computed beforehand.

    Returns the number of rows. An unknown artist is null, as a peer expects it; of several codes the first counts. `ours-*/` are the same
    keys for our own linkage from keys, in its buckets.
    """
    artists = read_whole_table(paths, "source_artist")
    staged = paths.staged("source_recording", CATALOG_PLATFORMS)
    none = TABLES["source_artist"].build_empty()
    found = [collect_names(scan_table(TABLES["source_recording"], folder).collect(), none) for folder in staged]
    names = build_name_table(pl.concat([*found, collect_names(TABLES["source_recording"].build_empty(), artists)]).unique())
    rows, buckets = 0, 1 + sum(map(count_rows, staged)) // ROWS_PER_BUCKET
    out.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(part for folder in staged for part in list_parts(folder)):
        normal = normalise(pl.read_parquet(part), names, artists)
        # Our own run starts from the same keys, so that both sides skip the same work.
        by_bucket = normal.with_columns(bucket=hash_bucket(buckets)).partition_by("bucket", as_dict=True, include_key=False)
        for (bucket,), records in by_bucket.items():
            records.write_parquet(out / f"ours-{bucket:02d}" / f"{number:05d}.parquet", mkdir=True)
        keys = normal.with_row_index("record", rows)
        keys = keys.with_columns(
            pl.col("record").cast(pl.Int64),
            # Splink takes null as no evidence; two empty keys would count as equal.
            artist_key=pl.when(pl.col("artist_key") != "").then("artist_key"),
            kind=pl.col("variant").str.split(":").list.first(),
            isrc=pl.col("isrcs").list.first(),
            title_start=pl.col("title_key").str.slice(0, PREFIX_CHARACTERS),
            slot=pl.col("duration_ms") // DURATION_SLOT_MS,
        )
        keys.drop("isrcs", "artist_hash", "release_id").write_parquet(out / f"part-{number:05d}.parquet")
        rows += keys.height
    return rows
