"""Edges from whole releases: two releases of one title whose tracks agree place by place hold one recording in each place.

A barcode says that two releases are one product (release_positions.py), but many have none. So releases are laid over each other by title:
if other tracks in the same places are known to be one recording, and lengths do not contradict, a track with damaged names or without a
length is the one in its place. Only places with an atom that lacks a code are looked at. Each build aligns all of them anew, because what
agrees depends on all other edges. Out of scope: what names in one place must have in common (guards.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.record_keys.numbers import number_release
from catalog_store.record_keys.place_numbers import TRACK_BITS
from catalog_store.sorted_search import search_many
from catalog_store.tables import TABLES
from pipeline.linkage.connected_components import find_roots
from pipeline.linkage.damaged_names import is_rounded_to_minutes
from pipeline.linkage.guards import (
    DURATION_MS,
    PAIRS_AT_A_TIME,
    TYPO_DURATION_MS,
    add_compared_columns,
    add_verdict,
    compute_duration_gap,
    has_same_key,
)
from pipeline.linkage.performers import mark_other_performers
from pipeline.linkage.sorted_runs import find_run_starts, mark_known, sort_distinct
from pipeline.linkage.title_parts import is_part_of_title
from pipeline.linkage.weak_edges import add_roots, drop_contradicted, drop_unclear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pipeline.linkage.block_pairs import AtomSource
    from pipeline.linkage.sorted_runs import Numbers
    from pipeline.linkage.weak_pairs import Standing

FEWEST_AGREEING = 2
"""Other places in which both releases have one recording: one may be the hit that every collection has."""
LEAST_SHARE = 1 / 3
"""Smallest share of the common places that must agree. A platform that damages titles damages many tracks of a release."""
OTHER_LENGTH_MS = 15_000
"""Two tracks that differ more are another list of tracks, and two tracks of equal names that differ less have a wrong length."""
LARGEST_GROUP = 32
"""Releases of one title that are compared: `Greatest Hits` of thousands tell nothing."""
TRACKS_AT_A_TIME = 500_000
"""Tracks that are paired at a time, on average. Each is in up to 31 pairs."""
TITLES_AT_A_TIME = 2_000_000
"""Releases whose titles are compared at a time: some 80 MB."""
_EDITION = r"[(\[][^()\[\]]*(?:edition|version|deluxe|remaster|expanded|bonus)[^()\[\]]*[)\]]|(?: - |\s)(?:ep|single)\s*$"


def find_aligned_edges(
    atoms: AtomSource,
    components: pl.DataFrame,
    standing: Standing,
    releases: Callable[[], Iterable[pl.DataFrame]],
    tracks: Callable[[], Iterable[pl.DataFrame]],
) -> pl.DataFrame:
    """Return edges of kind `position` between atoms of which one is without a code.

    Args:
        atoms: tables `atom` and `atom_member` (with `record`).
        components: atom_id, cluster_id by all other edges, in the order of atoms; an atom that is not among them has none.
        standing: by these components.
        releases: yields platform, release_id, title of all releases.
        tracks: yields release, record, spot (as `place_numbers.select_placed`) of all tracks.
    """
    placed = _place_atoms(atoms, _read_titles(releases()), components, standing.anchored.to_numpy(), tracks)
    found = [_pair_atoms(rows, atoms, standing.anchored.to_numpy()) for rows in _cut_by_title(placed)]
    if not found:
        return TABLES["edge"].build_empty()
    ends = (pl.min_horizontal("atom_id", "atom_id_b"), pl.max_horizontal("atom_id", "atom_id_b"))
    pairs = (
        pl.concat(found)
        .group_by(a=ends[0], b=ends[1])
        .agg(bits=pl.col("agreeing").max().cast(pl.Float64), spot=pl.col("spot").min(), is_same_list=pl.col("is_same_list").any())
    )
    if pairs.is_empty():
        return TABLES["edge"].build_empty()
    # Sorted, so that the atoms of some pairs are near each other. All at once took 2 GB at 30 million recordings.
    judged = pl.concat([_judge(some, atoms) for some in pairs.sort("a", "b").iter_slices(PAIRS_AT_A_TIME)])
    if judged.is_empty():
        return TABLES["edge"].build_empty()
    chosen = drop_unclear(drop_contradicted(add_roots(judged, components, standing.anchored), atoms))
    evidence = pl.format(
        "one title of a release, place {}-{}, {} other places agree",
        pl.col("spot") // (1 << TRACK_BITS),
        pl.col("spot") % (1 << TRACK_BITS),
        pl.col("bits").cast(pl.Int64),
    )
    edges = chosen.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("position"), score="score", evidence=evidence)
    return TABLES["edge"].conform(edges.sort("atom_id_a", "atom_id_b"))


def _read_titles(releases: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return release, title (a number) of all releases whose title says something."""
    title = pl.col("title").str.to_lowercase().str.replace_all(_EDITION, "").str.replace_all(r"[^\pL\pN]+", "")
    # No list of these: the texts of 18 million releases took 1.2 GB.
    named = (rows.select(release=number_release(), title=title).filter(pl.col("title") != "") for rows in releases)
    known = [rows.with_columns(pl.col("title").hash()) for rows in named]
    return pl.concat([pl.DataFrame(schema={"release": pl.UInt64, "title": pl.UInt64}), *known])


def _place_atoms(
    atoms: AtomSource,
    titles: pl.DataFrame,
    components: pl.DataFrame,
    anchored: Numbers,
    tracks: Callable[[], Iterable[pl.DataFrame]],
) -> list[pl.DataFrame]:
    """Return title, release, spot, atom_id, root of all tracks of the releases that share a title with one that has an atom without a code.

    Two records of one atom in one place give the same row twice.
    """
    # One name for each narrower frame: the titles of all releases are not held to the end. A sort of all at once took .7 GB.
    parts = 1 + titles.height // TITLES_AT_A_TIME
    titles = pl.concat(_select_shared_titles(titles.filter(pl.col("title") % parts == part)) for part in range(parts))
    # Most titles have atoms with codes alone. The tracks of the others are read in a second pass, so that memory holds only them.
    members = atoms.read_pieces("atom_member", ["record", "atom_id"])
    free = np.concatenate([rows["record"].to_numpy()[~mark_known(rows["atom_id"], anchored)] for rows in members])
    free.sort()
    with_free = (rows["release"].filter(pl.Series(mark_known(rows["record"], free))).unique() for rows in tracks())
    known = pl.concat([titles["release"].clear(), *with_free])
    titles = titles.join(titles.filter(pl.col("release").is_in(known.implode())), on="title", how="semi").sort("release")
    held = titles["release"].to_numpy()
    listed = (rows["record"].filter(pl.Series(mark_known(rows["release"], held))).to_numpy() for rows in tracks())
    records = sort_distinct([np.empty(0, np.uint64), *listed])
    members = atoms.read_pieces("atom_member", ["record", "atom_id"])
    found = pl.concat([some.filter(mark_known(some["record"], records)) for some in members]).sort("record")
    # A third pass finds the atoms of some tracks at a time. With all tracks in memory the process took 3.26 GB at 30 million recordings.
    return [_look_up_tracks(rows, titles, found, components) for rows in tracks()]


def _look_up_tracks(rows: pl.DataFrame, titles: pl.DataFrame, members: pl.DataFrame, components: pl.DataFrame) -> pl.DataFrame:
    """Return title, release, spot, atom_id, root of those of some tracks (release, record, spot) whose release and record are known.

    `titles`, `members`: numbers in order, and their values.
    """
    is_known = mark_known(rows["release"], titles["release"].to_numpy()) & mark_known(rows["record"], members["record"].to_numpy())
    rows = rows.filter(pl.Series(is_known))
    # A binary search for each: two joins took .6 GB for 2.3 million tracks.
    atom_ids = _look_up(rows["record"], members)
    placed = rows.select(_look_up(rows["release"], titles), "release", "spot")
    return placed.with_columns(atom_ids, find_roots(atom_ids, components).alias("root"))


def _select_shared_titles(titles: pl.DataFrame) -> pl.DataFrame:
    """Return the releases of titles that several releases have, and not too many to compare."""
    # Sorted, they need no group of each title.
    titles = titles[titles["title"].arg_sort()]
    sizes = np.diff(find_run_starts(titles["title"].to_numpy()), append=titles.height)
    return titles.filter(pl.Series(np.repeat((sizes > 1) & (sizes <= LARGEST_GROUP), sizes), dtype=pl.Boolean))


def _look_up(numbers: pl.Series, known: pl.DataFrame) -> pl.Series:
    """Return the value of each number. `known`: numbers in order, all of these among them, and their values."""
    return known.to_series(1).gather(search_many(known.to_series(0).to_numpy(), numbers.to_numpy()))


def _cut_by_title(placed: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the tracks of some titles at a time."""
    tracks = sum(rows.height for rows in placed)
    parts = -(-tracks // TRACKS_AT_A_TIME)
    for part in range(parts):
        yield pl.concat(rows.filter(pl.col("title") % parts == part) for rows in placed)


def _pair_atoms(placed: pl.DataFrame, atoms: AtomSource, anchored: Numbers) -> pl.DataFrame:
    """Return the tracks in one place of two aligned releases that are not yet one recording, and of which one is without a code.

    `placed`: all tracks of some titles: title, release, spot, atom_id, root (the component of the atom).
    """
    placed = placed.unique()
    timed = atoms.read_atom_rows("atom", placed["atom_id"].unique(), ["atom_id", "duration_ms"])
    beside = _pair_places(placed.join(timed, on="atom_id"))
    pairs = beside.join(_find_aligned(beside), on=["release", "release_b"]).filter(pl.col("root") != pl.col("root_b"))
    is_coded = (mark_known(pairs[name], anchored) for name in ("atom_id", "atom_id_b"))
    pairs = pairs.filter(pl.Series(~np.logical_and(*is_coded)))
    return pairs.select("atom_id", "atom_id_b", "spot", "agreeing", "is_same_list")


def _pair_places(placed: pl.DataFrame) -> pl.DataFrame:
    """Return the tracks of two releases of one title in one place, each pair of releases once; `_b`: those of the second."""
    # A place with several tracks of a release is none.
    alone = placed.filter(pl.len().over("release", "spot") == 1)
    return alone.join(alone, on=["title", "spot"], suffix="_b").filter(pl.col("release") < pl.col("release_b"))


def _find_aligned(beside: pl.DataFrame) -> pl.DataFrame:
    """Return release, release_b, agreeing, is_same_list of the pairs of releases of which no places contradict the others."""
    is_one = pl.col("root") == pl.col("root_b")
    gap = (pl.col("duration_ms") - pl.col("duration_ms_b")).abs()
    is_other = ~is_one & (gap > OTHER_LENGTH_MS)
    found = beside.group_by("release", "release_b").agg(
        agreeing=is_one.sum().cast(pl.Int64), compared=pl.len(), contradicting=is_other.fill_null(value=False).sum()
    )
    is_same_list = (
        (pl.col("agreeing") >= FEWEST_AGREEING)
        & (pl.col("agreeing") >= pl.col("compared") * LEAST_SHARE)
        & (pl.col("contradicting") <= pl.col("agreeing") * LEAST_SHARE)
    )
    # A single has no other track, so its artist must speak for it.
    return found.filter(is_same_list | (pl.col("contradicting") == 0)).select("release", "release_b", "agreeing", is_same_list=is_same_list)


def _judge(pairs: pl.DataFrame, atoms: AtomSource) -> pl.DataFrame:
    """Return the pairs whose names and lengths can be those of one recording, with `score`."""
    rows = atoms.read_atom_rows("atom", pl.concat([pairs["a"], pairs["b"]]).unique(), TABLES["atom"].column_names)
    judged = add_verdict(add_compared_columns(pairs, rows))
    gap = compute_duration_gap()
    is_near = (gap <= DURATION_MS) | gap.is_null() | (has_same_key() & (gap <= OTHER_LENGTH_MS)) | is_rounded_to_minutes()
    is_one_artist = (pl.col("a_artist_key") == pl.col("b_artist_key")) & (pl.col("a_artist_key") != "")
    is_one_title = (pl.col("a_title_key") == pl.col("b_title_key")) | (gap <= TYPO_DURATION_MS)
    # Without a length the place says which movement it is.
    is_part = gap.is_null() & (pl.col("reason") == "title") & is_part_of_title() & is_one_artist
    is_sure = pl.col("is_same_list") | (is_one_artist & is_one_title)
    possible = judged.filter((pl.col("reason").is_null() | is_part) & is_near & is_sure & ~mark_other_performers())
    return possible.select(*pairs.columns, "score")
