"""Harsh worlds for the benchmark: dumps read by our adapters, cut into the half with codes and the half without, and rows for a peer.

An existing world in the folder is reused. The folder's name holds size and seed, but not the version of the code.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchmarks.linkage_worlds import list_parquet_files, read_whole_table, stage_world, write_keys
from catalog_store.name_keys import compact_expr, fold_expr
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table
from pipeline.linkage.dirt_figures import HALVES
from pipeline.paths import BuildPaths

CUT_TABLES = ("source_recording", "source_release_track")
"""Tables whose rows belong to records; artists, releases and links stay whole."""
WORD = r"\w+"


def stage_halves(work: Path, recordings: int, seed: int) -> dict[str, BuildPaths]:
    """Return the catalog roots of the two halves of a harsh world, by name; the whole world is beside them in `work`."""
    whole = stage_world(work, recordings, seed, world="harsh")
    dirt = read_dirt(whole)
    halves = {}
    for name, coded in HALVES.items():
        paths = halves[name] = BuildPaths(whole.root.parent / name)
        records = dirt.filter(pl.col("has_codes") == coded).select("platform", "external_id")
        for platform in CATALOG_PLATFORMS:
            if not paths.staging(platform).exists():
                _write_half(whole, paths, platform, records)
    return halves


def _write_half(whole: BuildPaths, paths: BuildPaths, platform: str, records: pl.DataFrame) -> None:
    for name in ("source_recording", "source_artist", "source_link", "source_release", "source_release_track"):
        folder = whole.staging(platform) / name
        if folder.is_dir():
            rows = read_table(TABLES[name], folder)
            kept = rows.join(records, on=["platform", "external_id"], how="semi", maintain_order="left") if name in CUT_TABLES else rows
            write_table(TABLES[name], paths.staging(platform) / name, kept)


def read_dirt(paths: BuildPaths) -> pl.DataFrame:
    """Return platform, external_id, has_codes, is_decidable, dirt of a world; `paths` may be one of its halves."""
    return pl.read_parquet(list_parquet_files(paths.root.parent / "truth" / "dirt"))


def write_peer_rows(root: str, out: str) -> int:
    """Write `rows.parquet` for a peer: our keys, the words of title and artists, the album's key and the year. Returns the rows.

    Everything is normalised for the peer, and unknown values are null, as it expects them.
    """
    paths, folder = BuildPaths(Path(root)), Path(out)
    count = write_keys(paths, folder / "keys")
    keys = pl.read_parquet(list_parquet_files(folder / "keys"))
    albums = read_whole_table(paths, "source_release").select("platform", "release_id", album=pl.col("title"))
    records = read_whole_table(paths, "source_recording").join(albums, on=["platform", "release_id"], how="left")
    known = records.select(
        "platform",
        "external_id",
        title_words=fold_expr(pl.col("title")).str.extract_all(WORD),
        artist_words=fold_expr(pl.col("artists").list.eval(pl.element().struct.field("name")).list.join(" ")).str.extract_all(WORD),
        album_key=compact_expr(fold_expr(pl.col("album"))),
        year=pl.col("release_date").str.extract(r"^(\d{4})").cast(pl.Int32),
    ).with_columns(album_key=pl.when(pl.col("album_key") != "").then("album_key"))
    keys.join(known, on=["platform", "external_id"], how="left", maintain_order="left").write_parquet(folder / "rows.parquet")
    return count
