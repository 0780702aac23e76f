"""Match weights estimated without labels from any staged tables, beside the constants of linkage (pipeline/linkage/match_weights.py).

    python -m benchmarks.match_weights [--catalog ROOT ...] [--recordings 20000] [--seeds 861] [--work DIR]

`m`, the chance of what is seen if two records are one recording, comes from pairs of records of two platforms that share an ISRC. `u` comes
from random pairs of two platforms, and `of song` from two versions of one song: these are not labels, because names and variants tell
them apart. A signal is weighed on pairs that agree in the other signals, so that a wrong code counts little: lengths on equal names, albums
and years on equal names and close lengths, names on close lengths. A weight is log2(m / u). Without `--catalog`, both simulated worlds of
the seeds are estimated.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from rapidfuzz import process
from rapidfuzz.distance import OSA

from benchmarks.linkage_worlds import read_whole_table, stage_world
from catalog_store.name_keys import build_title_keys_frame, compact_expr
from pipeline.linkage import match_weights
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.generic_titles import is_generic_title
from pipeline.linkage.normal_forms import collect_names, normalise
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LARGEST_CODE = 12
"""In records. A code on more of them is on a whole release."""
LARGEST_SONG = 60
"""In records. One busy song would outweigh all others."""
RANDOM_PAIRS = 400_000
CLOSE_MS = 4_000
NAMES = ("artist_key", "title_key", "variant")
FEWEST = 20
"""Pairs of a level, below which the estimate is left out."""


class Estimate(NamedTuple):
    """The estimates of one level; `pairs`: those of one recording at this level. `constant`: that of linkage, None without one."""

    signal: str
    level: str
    pairs: int
    m: float
    u: float | None
    u_of_song: float | None
    constant: float | None


def read_records(paths: BuildPaths) -> pl.DataFrame:
    """Return the records of all platforms with their keys, the album's key, the place on it and the year."""
    records, artists, releases, tracks = (
        read_whole_table(paths, f"source_{name}") for name in ("recording", "artist", "release", "release_track")
    )
    names = build_name_table(collect_names(records, artists))
    keys = normalise(records, names, artists).drop("release_id")
    stems = build_title_keys_frame(releases["title"]).select(album=compact_expr(pl.col("stem")))
    albums = releases.select("platform", "release_id", year=pl.col("release_date").str.head(4).cast(pl.Int16, strict=False)).hstack(stems)
    placed = tracks.select("platform", "release_id", "external_id", place=pl.struct("disc_number", "track_number").hash())
    placed = placed.join(albums, on=["platform", "release_id"]).unique(["platform", "external_id"], keep="first", maintain_order=True)
    found = keys.join(placed.drop("release_id"), on=["platform", "external_id"], how="left", maintain_order="left")
    # A single bears the name of its song.
    is_own = pl.col("album") == pl.col("title_key")
    found = found.with_columns(album=pl.when(~is_own & (pl.col("album") != "")).then("album"))
    return found.filter(pl.col("artist_key") != "", ~is_generic_title(pl.col("title_key"))).with_row_index("record")


def pair_by_code(records: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of records of two platforms that share a code."""
    coded = records.select("record", "platform", code="isrcs").explode("code", empty_as_null=False).drop_nulls()
    coded = coded.filter(pl.len().over("code") <= LARGEST_CODE)
    pairs = coded.join(coded, on="code", suffix="_b").filter(
        pl.col("record") < pl.col("record_b"), pl.col("platform") != pl.col("platform_b")
    )
    return _add_values(pairs.select(a="record", b="record_b").unique(), records)


def pair_at_random(records: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of records of two platforms, chosen by hashes of their ids."""
    order = records.select("record", number=pl.struct("platform", "external_id").hash(1)).sort("number")["record"]
    rounds = max(1, min(RANDOM_PAIRS // max(1, len(order)), len(order) - 1))
    pairs = pl.concat(pl.DataFrame({"a": order, "b": order.gather(np.roll(np.arange(len(order)), step))}) for step in range(1, rounds + 1))
    found = _add_values(pairs, records)
    return found.filter(pl.col("a_platform") != pl.col("b_platform"))


def pair_by_song(records: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of two versions of one song on two platforms: equal names, other variants."""
    columns = ("record", "platform", "artist_key", "title_key", "variant")
    placed = records.select(columns).filter(pl.len().over("artist_key", "title_key") <= LARGEST_SONG)
    pairs = placed.join(placed, on=["artist_key", "title_key"], suffix="_b").filter(
        pl.col("record") < pl.col("record_b"), pl.col("platform") != pl.col("platform_b"), pl.col("variant") != pl.col("variant_b")
    )
    return _add_values(pairs.select(a="record", b="record_b"), records)


def estimate(records: pl.DataFrame) -> Iterator[Estimate]:
    """Yield the estimates of all levels of all signals."""
    joined, others = pair_by_code(records), (pair_at_random(records), pair_by_song(records))
    same_names = joined.filter(pl.all_horizontal(pl.col(f"a_{name}") == pl.col(f"b_{name}") for name in NAMES))
    gap = (pl.col("a_duration_ms") - pl.col("b_duration_ms")).abs()
    limits = [limit for limit, _ in match_weights.DURATION_BITS]
    level = pl.lit(len(limits))
    for number, limit in reversed(list(enumerate(limits))):
        level = pl.when(gap <= limit).then(number).otherwise(level)
    names = [f"within {limit / 1000:g} s" for limit in limits] + ["more"]
    constants = [*(bits for _, bits in match_weights.DURATION_BITS), match_weights.OTHER_DURATION_BITS]
    timed = gap.is_not_null()
    yield from _compare(
        "length", same_names.filter(timed), [pairs.filter(timed) for pairs in others], level, list(zip(names, constants, strict=True))
    )
    close = same_names.filter((gap <= CLOSE_MS).fill_null(value=False))
    for name, same, other in (
        ("album", match_weights.ALBUM_BITS, match_weights.OTHER_ALBUM_BITS),
        ("year", match_weights.YEAR_BITS, match_weights.OTHER_YEAR_BITS),
    ):
        known = pl.col(f"a_{name}").is_not_null() & pl.col(f"b_{name}").is_not_null()
        differs = (pl.col(f"a_{name}") != pl.col(f"b_{name}")).cast(pl.Int32)
        yield from _compare(
            name, close.filter(known), [pairs.filter(known) for pairs in others], differs, [("the same", same), ("another", other)]
        )
    on_album = pl.col("a_album") == pl.col("b_album")
    differs = (pl.col("a_place") != pl.col("b_place")).cast(pl.Int32)
    places = [("the same", match_weights.PLACE_BITS), ("another", match_weights.OTHER_PLACE_BITS)]
    yield from _compare("place on one album", close.filter(on_album), [pairs.filter(on_album) for pairs in others], differs, places)
    yield from _estimate_names(joined.filter((gap <= CLOSE_MS).fill_null(value=False)))


def _estimate_names(joined: pl.DataFrame) -> Iterator[Estimate]:
    """Yield the share of pairs with each number of typing errors, and of lead artists that differ; `u` depends on the name and is nan."""
    for name, other in (("title", "artist"), ("artist", "title")):
        pairs = joined.filter(pl.col(f"a_{other}_key") == pl.col(f"b_{other}_key"))
        columns = [pairs[f"{side}_{name}_key"].to_list() for side in ("a", "b")]
        edits = process.cpdist(*columns, scorer=OSA.distance, dtype=np.int64)
        for count in (1, 2):
            found = int((edits == count).sum())
            share = found / max(1, len(edits))
            yield Estimate(f"{name}: typing errors", str(count), found, share, None, None, -match_weights.SLIP_BITS * count)
        if name == "artist":
            shares = pairs.filter(pl.lit(pl.Series(edits > 0)), pl.col("a_names").list.set_intersection("b_names").list.len() > 0).height
            yield Estimate("artist: another lead, a name in common", "", shares, shares / max(1, len(edits)), None, None, None)


def _compare(
    signal: str, joined: pl.DataFrame, others: Sequence[pl.DataFrame], level: pl.Expr, levels: Sequence[tuple[str, float]]
) -> Iterator[Estimate]:
    held = [dict(pairs.select(level=level).group_by("level").len().iter_rows()) for pairs in (joined, *others)]
    for number, (name, constant) in enumerate(levels):
        m, u, u_of_song = (found.get(number, 0) / max(1, sum(found.values())) for found in held)
        yield Estimate(signal, name, held[0].get(number, 0), m, u, u_of_song, constant)


def _add_values(pairs: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    columns = ("platform", *NAMES, "names", "duration_ms", "album", "place", "year")
    for side in ("a", "b"):
        values = records.select(pl.col("record").alias(side), *(pl.col(name).alias(f"{side}_{name}") for name in columns))
        pairs = pairs.join(values, on=side, how="left", maintain_order="left")
    return pairs


def print_estimates(title: str, records: pl.DataFrame) -> None:
    """Print a line for each level of each signal."""
    print(f"\n{title}: {records.height:,} records")
    print(f"{'signal':<40}{'level':<13}{'pairs':>7}{'m':>8}{'u':>9}{'of song':>10}{'bits':>7}{'of song':>10}{'constant':>10}")
    for found in estimate(records):
        bits = [_weigh(found, u) for u in (found.u, found.u_of_song)]
        if found.u is None:
            bits = [_weigh(found, 1.0), ""]
        chances = ["" if u is None else f"{u:.5f}" for u in (found.u, found.u_of_song)]
        constant = "" if found.constant is None else f"{found.constant:.1f}"
        print(f"{found.signal:<40}{found.level:<13}{found.pairs:>7}{found.m:>8.4f}{chances[0]:>9}{chances[1]:>10}", end="")
        print(f"{bits[0]:>7}{bits[1]:>10}{constant:>10}", flush=True)


def _weigh(found: Estimate, u: float | None) -> str:
    return f"{math.log2(found.m / u):.1f}" if u and found.pairs >= FEWEST else ""


def main() -> None:
    """Estimate the weights of each catalog, or of simulated worlds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalog", type=Path, nargs="*", default=[], help="catalog roots whose staged tables are read")
    parser.add_argument("--recordings", type=int, default=20_000, help="true recordings in a simulated world (default %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[861])
    parser.add_argument("--work", type=Path, help="folder for simulated worlds, kept and used again (default: a temporary one)")
    options = parser.parse_args()
    for root in options.catalog:
        print_estimates(str(root), read_records(BuildPaths(root)))
    if options.catalog:
        return
    with tempfile.TemporaryDirectory() as scratch:
        for seed in options.seeds:
            for world in ("plain", "harsh"):
                paths = stage_world(options.work or Path(scratch), options.recordings, seed, world=world)
                print_estimates(f"{world} world, seed {seed}", read_records(paths))


if __name__ == "__main__":
    main()
