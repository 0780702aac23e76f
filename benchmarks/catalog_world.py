"""A catalog of any size without the pipeline: recordings of the simulated world, written into the catalog tables and published.

    python -m benchmarks.catalog_world --recordings 10000000 --seed 7 FOLDER

It serves measurements behind the build: search, lookups, browsing, the server. A build through dumps and linkage takes six times as long
and adds nothing to these. Names, credits, releases, codes and dates come from `simulator`, without the dirt that linkage would remove; ids
are the numbers of the world. FOLDER is a catalog root: `work/catalog/<table>`, `snapshots/`, `current`.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.name_keys import build_title_keys_frame
from catalog_store.name_keys.variants import build_variants_expr
from catalog_store.platforms import CATALOG_A, CATALOG_B, STORE_A, STREAMSVC_A, STREAMSVC_B, STREAMSVC_C
from catalog_store.publisher import publish
from catalog_store.tables import CATALOG_TABLES, TABLES
from catalog_store.tables.files import TableWriter, write_table
from genre_rules.load import load_book
from pipeline.build.genres import build_genre_rows
from pipeline.build.tracks import build_tracks
from pipeline.engine.pool import map_ordered
from pipeline.paths import BuildPaths
from simulator.cast import make_cast
from simulator.genre_words import MAINS
from simulator.randomness import make_base62_ids, make_generator, make_uuids
from simulator.releases import RELEASES_PER_RECORDING
from simulator.rows import CREDITS, make_block
from simulator.settings import SimulationSettings
from simulator.songs import NOBODY
from simulator.wording import build_version_words

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from simulator.rows import World

VARIOUS_ARTISTS_ID, FIRST_ARTIST_ID = 1, 2
COVERAGE = {STREAMSVC_A: 0.85, STREAMSVC_B: 0.55, STREAMSVC_C: 0.45, STORE_A: 0.2, CATALOG_A: 0.25, CATALOG_B: 0.3}
"""The share of recordings that each platform links to."""
IN_WORKS = 0.5
UNDATED, YEAR_ONLY = 0.01, 0.05
CLASSIFIED, HAS_SUBGENRE = 0.92, 0.6
RELEASE_TYPES = {"album": "album", "ep": "ep", "single": "single", "live": "album", "edition": "album", "compilation": "compilation"}
_BLOCKWISE = (
    "recording",
    "recording_isrc",
    "recording_artist",
    "recording_release",
    "release",
    "platform_link",
    "work",
    "work_recording",
    "recording_genre",
)


def _build_block(settings: SimulationSettings, subgenres: dict[str, list[int]], block: int) -> dict[str, pl.DataFrame]:
    """Return rows of all `_BLOCKWISE` tables of one block of the world, and `named`, from which artists and labels are counted."""
    world, cast = make_block(settings, block), make_cast(settings)
    rng = make_generator(settings.seed, "catalog world", block)
    recordings = _build_recordings(world, cast.names)
    releases, placements = _build_releases(settings, world, recordings, rng)
    first_dates = (
        placements.join(releases.select("release_id", "release_date", "release_date_precision"), on="release_id")
        .sort("recording_id", "release_date", nulls_last=True)
        .group_by("recording_id", maintain_order=True)
        .first()
        .select("recording_id", "release_date", "release_date_precision")
    )
    credits_ = _build_credits(recordings, cast.names)
    shown = credits_.group_by("recording_id", maintain_order=True).agg(artist_credit=pl.col("name").str.join(", "))
    codes = pl.concat(
        [
            recordings.select("isrc", "recording_id", is_representative=pl.lit(value=True)),
            recordings.select(pl.col("second_isrc").alias("isrc"), "recording_id", is_representative=pl.lit(value=False)),
        ]
    ).drop_nulls()
    # Two recordings of the world can share a code by intent; the catalog has one owner for each.
    codes = codes.unique("isrc", keep="first", maintain_order=True).with_columns(platform_count=pl.lit(2, pl.Int32)).sort("isrc")
    own = codes.filter("is_representative").select("recording_id", code="isrc")
    recordings = (
        recordings.join(first_dates, on="recording_id", how="left", maintain_order="left")
        .join(shown, on="recording_id", how="left", maintain_order="left")
        .join(own, on="recording_id", how="left", maintain_order="left")
        .with_columns(isrc="code")
    )
    links = _build_links(recordings, placements, rng)
    counts = links.group_by("recording_id").agg(platform_count=pl.len().cast(pl.Int32))
    recordings = recordings.join(counts, on="recording_id", how="left", maintain_order="left").with_columns(
        pl.col("platform_count").fill_null(1)
    )
    works = pl.concat([recordings.select("recording_id", iswc=name, title="title") for name in ("iswc", "second_iswc")]).drop_nulls("iswc")
    works = works.filter(
        pl.col("recording_id").is_in(recordings["recording_id"].filter(pl.Series(rng.random(recordings.height) < IN_WORKS)))
    )
    made = {
        "recording": recordings.with_columns(
            duration_seconds=((pl.col("duration_ms") + 500) // 1000).cast(pl.Int32),
            source_count="platform_count",
            title_platform=pl.lit(STREAMSVC_A),
        ),
        "recording_isrc": codes,
        "recording_artist": credits_,
        "recording_release": placements,
        "release": releases,
        "platform_link": links,
        "work": works.unique("iswc", keep="first", maintain_order=True).select("iswc", "title").sort("iswc"),
        "work_recording": works.select("iswc", "recording_id", kind=pl.lit(None, pl.String)).unique().sort("iswc", "recording_id"),
        "recording_genre": _build_genres(recordings, subgenres, rng),
    }
    fitting = {name: _conform_tables(name, frame) for name, frame in made.items()}
    return fitting | {
        "named": credits_.select("artist_id", "recording_id").join(recordings.select("recording_id", "popularity"), on="recording_id")
    }


def _conform_tables(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    schema = TABLES[name].build_empty().schema
    return frame.select(pl.col(column).cast(kind) for column, kind in schema.items())


def _build_recordings(world: World, names: pl.Series) -> pl.DataFrame:
    recordings = world.made.recordings
    songs = world.made.songs[recordings["song"].to_numpy()]
    frame = pl.concat([recordings.drop("variant"), songs.drop("twin")], how="horizontal").rename({"true_id": "recording_id"})
    remixer = names.gather(frame.select(pl.when(pl.col("remixer") != NOBODY).then("remixer")).to_series())
    frame = frame.with_columns(remixer_name=remixer)
    frame = frame.with_columns(
        title=pl.when(pl.col("kind") == "original")
        .then("title")
        .otherwise(pl.concat_str("title", pl.lit(" ("), build_version_words(), pl.lit(")")))
    )
    # Titles repeat, and each is read once.
    distinct = frame["title"].unique()
    variants = pl.DataFrame({"title": distinct, "variant": build_title_keys_frame(distinct)["variant"]})
    named = frame.join(variants, on="title", how="left", maintain_order="left")
    return named.with_columns(variants=build_variants_expr(pl.col("variant")))


def _build_releases(
    settings: SimulationSettings, world: World, recordings: pl.DataFrame, rng: np.random.Generator
) -> tuple[pl.DataFrame, pl.DataFrame]:
    cast, laid = make_cast(settings), world.laid
    ids = laid.releases["number"] + 1
    placements = laid.placements.select(
        recording_id=recordings["recording_id"].gather(laid.placements["recording"]),
        release_id=ids.gather(laid.placements["release"]),
        disc_number=pl.lit(1),
        track_number="track",
    ).unique(["recording_id", "release_id"], keep="first", maintain_order=True)
    counts = (
        placements.join(recordings.select("recording_id", "popularity"), on="recording_id")
        .group_by("release_id")
        .agg(track_count=pl.len(), popularity=pl.col("popularity").max())
    )
    bare = laid.releases.drop("popularity").with_columns(release_id=ids, coin=pl.Series(rng.random(len(ids))))
    releases = bare.join(counts, on="release_id", how="inner", maintain_order="left")
    artist = releases.select(pl.when(pl.col("artist") != NOBODY).then("artist")).to_series()
    year_only = pl.col("coin") < UNDATED + YEAR_ONLY
    year = pl.col("year").cast(pl.String)
    full = pl.concat_str(*(pl.col(name).cast(pl.String).str.zfill(2) for name in ("year", "month", "day")), separator="-")
    releases = releases.with_columns(
        artist_id=(artist + FIRST_ARTIST_ID).fill_null(VARIOUS_ARTISTS_ID),
        artist_name=cast.names.gather(artist).fill_null("Various Artists"),
        artist_credited_as=pl.lit(None, pl.String),
        label_id=pl.col("label") + 1,
        label_name=cast.label_names.gather(releases["label"]),
        release_date=pl.when(pl.col("coin") >= UNDATED).then(pl.when(year_only).then(year + "-01-01").otherwise(full)).str.to_date(),
        release_date_precision=pl.when(pl.col("coin") >= UNDATED).then(pl.when(year_only).then(pl.lit("year")).otherwise(pl.lit("day"))),
        release_type=pl.col("kind").replace_strict(RELEASE_TYPES, default="album"),
        is_compilation=pl.col("kind") == "compilation",
        gtin=pl.col("gtin").str.zfill(14),
        platform_count=pl.lit(3),
    )
    return releases, placements.sort("recording_id", "release_id")


def _build_credits(recordings: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """Build recording_artist, primary artists first; a remixer who is also a guest has one row."""
    rows = [
        recordings.select("recording_id", place=pl.lit(place), credit=pl.lit(credit), artist=credit) for place, credit in enumerate(CREDITS)
    ]
    every = pl.concat(rows).filter(pl.col("artist") != NOBODY).sort("recording_id", "place")
    merged = every.group_by("recording_id", "artist", maintain_order=True).agg("credit")
    return merged.select(
        "recording_id",
        position=pl.int_range(pl.len()).over("recording_id"),
        artist_id=pl.col("artist") + FIRST_ARTIST_ID,
        name=names.gather(merged["artist"]),
        credited_as=pl.lit(None, pl.String),
        is_primary=pl.col("credit").list.set_intersection(["artist", "second_artist"]).list.len() > 0,
        is_remixer=pl.col("credit").list.contains("remixer"),
    )


def _build_links(recordings: pl.DataFrame, placements: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Build platform_link: an id of the recording's own on every platform except catalog_a, where it is its release's."""
    ids = recordings["recording_id"].to_numpy()
    on_release = placements.group_by("recording_id", maintain_order=True).agg(pl.col("release_id").first())
    forms: dict[str, Callable[[npt.NDArray[np.int64]], pl.Series]] = {
        STREAMSVC_A: lambda keys: make_base62_ids(keys, "catalog world"),
        STREAMSVC_B: lambda keys: pl.Series(keys * 7 + 3_000_000).cast(pl.String),
        STREAMSVC_C: lambda keys: pl.Series(keys * 13 + 1_400_000_000).cast(pl.String),
        STORE_A: lambda keys: pl.Series(keys * 3 + 1_000).cast(pl.String),
        CATALOG_B: lambda keys: make_uuids(keys, "catalog world"),
    }
    linked = {platform: ids[rng.random(len(ids)) < share] for platform, share in COVERAGE.items()}
    tables = [
        pl.DataFrame({"recording_id": keys, "external_id": forms[source](keys)}).with_columns(source=pl.lit(source))
        for source, keys in linked.items()
        if source in forms
    ]
    of_release = pl.DataFrame({"recording_id": linked[CATALOG_A]}).join(on_release, on="recording_id")
    tables.append(of_release.select("recording_id", external_id=pl.col("release_id").cast(pl.String), source=pl.lit(CATALOG_A)))
    return pl.concat(tables).with_columns(slug=pl.lit(None, pl.String)).sort("recording_id", "source", "external_id")


def _build_genres(recordings: pl.DataFrame, nodes: dict[str, list[int]], rng: np.random.Generator) -> pl.DataFrame:
    """Build recording_genre: the song's main, for a share of them with one of its subgenres.

    `nodes`: per main its id and those below it.
    """
    mains = [nodes[main] for main, _ in MAINS]
    own = np.array([ids[0] for ids in mains])[recordings["main"].to_numpy()]
    below = np.array([len(ids) for ids in mains])[recordings["main"].to_numpy()]
    drawn = 1 + (rng.random(len(own)) ** 2 * np.maximum(1, below - 1)).astype(np.int64)
    flat = np.array([(ids + ids[:1] * max(0, 200 - len(ids)))[:200] for ids in mains])
    sub = flat[recordings["main"].to_numpy(), np.minimum(drawn, 199)]
    coin = rng.random(len(own))
    rows = pl.DataFrame({"recording_id": recordings["recording_id"], "main": own, "sub": sub, "coin": coin}).filter(
        pl.col("coin") < CLASSIFIED
    )
    with_sub = (pl.col("coin") < HAS_SUBGENRE) & (pl.col("sub") != pl.col("main"))
    named = pl.concat(
        [
            rows.filter(with_sub).select("recording_id", genre_id="sub", position=pl.lit(0)),
            rows.filter(~with_sub).select("recording_id", genre_id="main", position=pl.lit(0)),
        ]
    )
    return named.sort("recording_id").with_columns(
        platform=pl.lit(STREAMSVC_A),
        entity_kind=pl.lit("artist"),
        genre=pl.lit("-"),
        parent=pl.lit(""),
        rule_id=pl.lit("node-0"),
        platform_count=pl.lit(1),
    )


def write_tables(settings: SimulationSettings, root: Path, report: Callable[[str], None]) -> BuildPaths:
    """Write every catalog table below `root`; `report` receives each block. FileExistsError when `root` exists."""
    root.mkdir(parents=True)
    paths = BuildPaths(root)
    taxonomy = load_book().taxonomy
    nodes = {main: [node.id for node in taxonomy.nodes if node.main_name == main] for main, _ in MAINS}
    write_table(TABLES["genre"], paths.table("genre"), build_genre_rows(taxonomy))
    counted: list[pl.DataFrame] = []
    led: list[pl.DataFrame] = []
    # Tables are written block by block, so memory depends on a block and not on the world.
    with ExitStack() as stack:
        writers = {name: stack.enter_context(TableWriter(TABLES[name], paths.table(name))) for name in _BLOCKWISE}
        for block, made in enumerate(map_ordered(partial(_build_block, settings, nodes), range(settings.block_count))):
            for name, writer in writers.items():
                writer.write(made[name])
            named = made["named"].group_by("artist_id").agg(recording_count=pl.len(), popularity=pl.col("popularity").max())
            counted.append(named)
            led.append(made["release"].select("artist_id", "label_id"))
            report(f"block {block + 1} of {settings.block_count}")
    _write_cast(settings, paths, pl.concat(counted), pl.concat(led))
    report("nesting tracks")
    build_tracks(paths)
    for table in CATALOG_TABLES:
        if not paths.table(table.name).exists():
            write_table(table, paths.table(table.name), table.build_empty())
    return paths


def _write_cast(settings: SimulationSettings, paths: BuildPaths, counted: pl.DataFrame, led: pl.DataFrame) -> None:
    """Write tables artist and label."""
    cast = make_cast(settings)
    artists = pl.DataFrame({"artist_id": np.arange(len(cast.names)) + FIRST_ARTIST_ID, "name": cast.names})
    various = pl.DataFrame({"artist_id": [VARIOUS_ARTISTS_ID], "name": ["Various Artists"]})
    counts = counted.group_by("artist_id").agg(pl.col("recording_count").sum(), pl.col("popularity").max())
    artists = (
        pl.concat([various, artists])
        .join(counts, on="artist_id", how="left", maintain_order="left")
        .join(led["artist_id"].value_counts(name="release_count"), on="artist_id", how="left", maintain_order="left")
        .with_columns(pl.col("recording_count", "release_count", "popularity").fill_null(0), sort_name=pl.lit(None, pl.String))
    )
    write_table(TABLES["artist"], paths.table("artist"), _conform_tables("artist", artists))
    labels = (
        pl.DataFrame({"label_id": np.arange(len(cast.label_names)) + 1, "name": cast.label_names})
        .join(led["label_id"].value_counts(name="release_count"), on="label_id", how="left", maintain_order="left")
        .with_columns(pl.col("release_count").fill_null(0))
    )
    write_table(TABLES["label"], paths.table("label"), _conform_tables("label", labels))


def publish_world(paths: BuildPaths, report: Callable[[str], None]) -> None:
    """Publish the tables of `write_tables` as the live snapshot of their root."""
    tables = {table.name: paths.table(table.name) for table in CATALOG_TABLES}
    # Above every id that a world of a hundred million recordings gives out.
    highest = RELEASES_PER_RECORDING * 100_000_000
    next_ids = dict.fromkeys(("recording", "artist", "release", "label"), highest)
    publish(tables, paths.root, snapshot_id="world", next_ids=next_ids, report=report)


def main() -> None:
    """Write and publish a world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--recordings", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--tables-only", action="store_true", help="do not publish")
    chosen = parser.parse_args()

    def report(line: str) -> None:
        print(line, flush=True)

    paths = write_tables(SimulationSettings(recordings=chosen.recordings, seed=chosen.seed), chosen.folder, report)
    if not chosen.tables_only:
        publish_world(paths, report)


if __name__ == "__main__":
    main()
