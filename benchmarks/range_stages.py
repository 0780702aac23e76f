"""The stages of recordings on a catalog that is copied with shifted ids: what they cost, and whether memory depends on the size.

    python -m benchmarks.range_stages CATALOG --copies 10 --work DIR

CATALOG is the root of a finished build. Its staging and linkage tables are written to DIR so many times, each copy with ids and codes of
its own, so copies do not merge. Then the stages run there. Prints a line per stage: processor seconds in all and of workers, those per
million recordings, peak memory of the building process and of its largest worker, spilled bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import INPUTS
from catalog_store.tables import TABLES
from catalog_store.tables.files import TableWriter, count_rows, list_parts
from pipeline.build.genres import build_genres
from pipeline.build.links import build_links
from pipeline.build.recording_ranges import RECORDINGS_PER_RANGE
from pipeline.build.recordings import build_recordings
from pipeline.build.source_values import build_source_values
from pipeline.build.tracks import build_tracks
from pipeline.engine.usage import measure_usage
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    from collections.abc import Callable

STAGES: dict[str, Callable[[BuildPaths], object]] = {
    "recordings": build_recordings,
    "source_values": build_source_values,
    "links": build_links,
    "genres": build_genres,
    "tracks": build_tracks,
}
STAGED = ("source_recording", "source_release", "source_release_track", "source_genre", "source_link", "source_redirect")
BUILT = ("isrc_owner", "source_credit", "atom", "atom_member", "atom_gone", "artist", "release", "recording_release")
"""Tables of which a copy follows the other. `recording_member` is in the order of texts: copies of a part follow each other there."""
IDS = (
    *("recording_id", "release_id", "artist_id", "label_id"),
    *("external_id", "link_id", "entity_id", "target_id", "old_id", "new_id"),
)
"""Ids: texts in staging tables, numbers in those of the catalog."""
MOST_COPIES = 26 * 26
"""Copies have codes of two letters in front."""


def shift_ids(rows: pl.DataFrame, copy: int, step: int) -> pl.DataFrame:
    """Return the rows with the ids and codes of one copy. Prefixes keep the order of texts, and `step` the order of numbers."""
    prefix, country = f"{copy:03d}~", chr(65 + copy // 26) + chr(65 + copy % 26)
    artist = pl.element().struct
    lists = {
        "isrcs": pl.lit(country) + pl.element().str.slice(2),
        "artists": pl.struct(pl.lit(prefix) + artist.field("artist_id"), artist.field("name"), artist.field("role")),
    }
    for name, dtype in rows.schema.items():
        column = pl.col(name)
        if name in IDS:
            rows = rows.with_columns((pl.lit(prefix) + column if dtype == pl.String else column + copy * step).alias(name))
        elif name == "isrc":
            rows = rows.with_columns((pl.lit(country) + column.str.slice(2)).alias(name))
        elif name == "atom_id":
            rows = rows.with_columns(column + copy)
        elif name in lists:
            rows = rows.with_columns(column.list.eval(lists[name]))
    # Codes of two countries may have become one, and are out of order.
    return rows.unique("isrc", keep="first").sort("isrc") if "isrc" in rows.columns else rows


def copy_table(source: Path, target: Path, copies: int, step: int, *, part_by_part: bool = False) -> None:
    """Write the copies of one table."""
    found = list_parts(source)
    pairs = [(part, copy) for part in found for copy in range(copies)] if part_by_part else []
    with TableWriter(TABLES[source.name], target) as writer:
        for part, copy in pairs or [(part, copy) for copy in range(copies) for part in found]:
            writer.write(shift_ids(pl.read_parquet(part), copy, step))


def copy_catalog(source: BuildPaths, target: BuildPaths, copies: int) -> None:
    """Write the inputs of the stages so many times."""
    ids = [
        pl.scan_parquet(list_parts(source.table(table))).select(pl.col(column).max()).collect().item()
        for table, column in (("recording", "recording_id"), ("release", "release_id"), ("artist", "artist_id"), ("label", "label_id"))
    ]
    # Whole ranges, so that a range holds as many recordings as in a catalog that was not copied.
    step = (max(known or 0 for known in ids) // RECORDINGS_PER_RANGE + 1) * RECORDINGS_PER_RANGE
    for platform in INPUTS:
        for name in STAGED:
            if (folder := source.staging(platform) / name).is_dir():
                copy_table(folder, target.staging(platform) / name, copies, step)
    for name in BUILT:
        copy_table(source.table(name), target.table(name), copies, step)
    copy_table(source.table("recording_member"), target.table("recording_member"), copies, step, part_by_part=True)


def main() -> None:
    """Copy, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path, metavar="CATALOG")
    parser.add_argument("--copies", type=int, default=10, choices=range(1, MOST_COPIES), metavar="N")
    parser.add_argument("--work", type=Path, required=True, help="empty folder for the copies")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    options = parser.parse_args()
    paths = BuildPaths(options.work)
    source = BuildPaths(options.catalog)
    copy_catalog(source, paths, options.copies)
    recordings = count_rows(source.table("recording")) * options.copies
    print(f"| {'stage':12} | CPU s | of workers | per million | peak GB | worker GB | spilled GB |\n|{'---|' * 7}")
    for name in options.stages:
        with measure_usage(paths.list_spill_folders) as usage:
            STAGES[name](paths)
        sizes = (usage.peak_bytes, usage.worker_peak_bytes, usage.spill_bytes)
        times = (usage.cpu_seconds, usage.worker_cpu_seconds, usage.cpu_seconds / recordings * 1e6)
        print(f"| {name:12} | {' | '.join(f'{value:.1f}' for value in times)} | {' | '.join(f'{size / 1e9:.2f}' for size in sizes)} |")
    print(f"{recordings:,} recordings, {count_rows(paths.table('recording_member')):,} source records")


if __name__ == "__main__":
    main()
