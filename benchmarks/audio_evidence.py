"""Audio as evidence of linkage: precision and recall with files of an operator for a share of all records, and without.

    python -m benchmarks.audio_evidence --work DIR [--recordings 20000] [--seed 31] [--shares 0 0.1 0.3 1] [--wrong 0.02] [--without-codes]

A simulated world read by our adapters. The files are staged, not decoded: each recording has made-up items, and each file is a copy of them
with one bit in 64 changed and up to a second cut off. A share of the files (`--wrong`) holds other audio than its mapping says: half of
these a stranger's, half a neighbour's, mostly another song or version of the artist. `--without-codes` takes the ISRCs from all records.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benchmarks.linkage_worlds import read_truth, read_whole_table, stage_world
from benchmarks.measurement import measure
from catalog_store.platforms import AUDIO, CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts, read_table, write_table
from pipeline.dumps.platforms.fingerprints.items import build_fingerprint_keys
from pipeline.linkage.evaluation import evaluate
from pipeline.paths import BuildPaths
from simulator.fingerprint_items import MOST_CUT, copy_items, count_items, draw_items

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS_PER_PART = 5_000
SHOWN = ("precision", "recall", "mixed_clusters", "split_recordings")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="where worlds are made; kept")
    parser.add_argument("--recordings", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--shares", type=float, nargs="+", default=[0, 0.1, 0.3, 1], help="shares of the records with a file")
    parser.add_argument("--wrong", type=float, default=0.02, help="share of the files with other audio")
    parser.add_argument("--without-codes", action="store_true")
    options = parser.parse_args(arguments)
    paths = stage_world(options.work, options.recordings, options.seed)
    truth = read_truth(paths)
    if options.without_codes:
        paths = copy_without_codes(paths, options.work / f"codeless-{options.recordings}-{options.seed}")
    records = (
        read_whole_table(paths, "source_recording")
        .select("platform", "external_id", "duration_ms")
        .join(truth, on=["platform", "external_id"])
    )
    for share in options.shares:
        shutil.rmtree(paths.root / "work" / "linkage", ignore_errors=True)
        stage_files(paths, records, options.seed, share, options.wrong)
        run = measure("benchmarks.linkage_runs:run_stages", str(paths.root))
        figures = evaluate(read_table(TABLES["recording_member"], paths.table("recording_member")), truth)
        compared = read_table(TABLES["audio_comparison"], paths.table("audio_comparison"))
        verdicts = dict(compared.group_by("verdict").agg(pl.struct("atom_id_a", "atom_id_b").n_unique()).sort("verdict").iter_rows())
        print(share, {name: figures[name] for name in SHOWN}, verdicts, f"{run.cpu:.1f} CPU s", flush=True)


def copy_without_codes(paths: BuildPaths, root: Path) -> BuildPaths:
    """Return another catalog root with the same staged records, without their ISRCs."""
    other = BuildPaths(root)
    if not other.staging_root.exists():
        shutil.copytree(paths.staging_root, other.staging_root)
        for platform in CATALOG_PLATFORMS:
            shutil.rmtree(other.staging(platform) / "new_records", ignore_errors=True)
            for part in list_parts(other.staging(platform) / "source_recording"):
                rows = pl.read_parquet(part)
                # Linkage hashes rows that come without a hash.
                bare = rows.with_columns(isrcs=pl.lit([], rows.schema["isrcs"]), content_hash=pl.lit(None, pl.Int64))
                bare.write_parquet(part)
    return other


def stage_files(paths: BuildPaths, records: pl.DataFrame, seed: int, share: float, wrong: float) -> None:
    """Write the staging tables of own files for a share of the records; none for a share of 0."""
    shutil.rmtree(paths.staging(AUDIO), ignore_errors=True)
    if not share:
        return
    draw = np.random.default_rng([seed, 2])
    seconds = records.group_by("true_recording_id").agg(seconds=(pl.col("duration_ms").median() / 1000).round().cast(pl.Int64))
    chosen = records.sort("platform", "external_id").filter(pl.Series(draw.random(records.height) < share))
    heard = chosen["true_recording_id"].to_numpy().copy()
    ids = np.unique(records["true_recording_id"].to_numpy())
    kind = draw.random(len(heard))
    heard[kind < wrong / 2] = draw.choice(ids, int((kind < wrong / 2).sum()))
    is_near = (kind >= wrong / 2) & (kind < wrong)
    heard[is_near] = ids[np.minimum(np.searchsorted(ids, heard[is_near]) + 1, len(ids) - 1)]
    files = pl.DataFrame({"platform": AUDIO, "fingerprint_id": -1 - np.arange(len(heard)), "true_recording_id": heard})
    files = files.join(seconds, on="true_recording_id", how="left", maintain_order="left").with_columns(pl.col("seconds").fill_null(200))
    folder = paths.staging(AUDIO)
    prints = (_build_fingerprints(rows, seed) for rows in files.iter_slices(ROWS_PER_PART))
    write_table(TABLES["source_fingerprint"], folder / "source_fingerprint", prints)
    mapping = files.select("platform", "fingerprint_id", path=pl.col("fingerprint_id").cast(pl.String)).with_columns(
        target_platform=chosen["platform"], external_id=chosen["external_id"]
    )
    write_table(TABLES["source_audio_file"], folder / "source_audio_file", TABLES["source_audio_file"].conform(mapping))


def _build_fingerprints(files: pl.DataFrame, seed: int) -> pl.DataFrame:
    items = []
    counts = count_items(files["seconds"].to_numpy())
    for number, heard, count in zip(files["fingerprint_id"], files["true_recording_id"], counts, strict=True):
        draw = np.random.default_rng([seed, heard, -number])
        whole = draw_items(np.random.default_rng([seed, heard]), 1)[0]
        items.append(copy_items(whole, draw)[int(draw.integers(MOST_CUT + 1)) : count].tolist())
    rows = files.select(
        "platform",
        "fingerprint_id",
        duration_seconds=pl.col("seconds") + files["fingerprint_id"] % 2,
        items=pl.Series(items, dtype=pl.List(pl.UInt32)),
    )
    return TABLES["source_fingerprint"].conform(rows.with_columns(build_fingerprint_keys(rows["fingerprint_id"], rows["items"])))


if __name__ == "__main__":
    main()
