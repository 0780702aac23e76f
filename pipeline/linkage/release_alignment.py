"""Edges from whole releases: two releases of one title whose tracks agree place by place hold one recording in each place.

A barcode says that two releases are one product (release_positions.py), but many have none. So releases are laid over each other by title:
if other tracks in the same places are known to be one recording, and lengths do not contradict, a track with damaged names or without a
length is the one in its place. Only places with an atom that lacks a code are looked at. Each build aligns all of them anew, because what
agrees depends on all other edges. Out of scope: what names in one place must have in common (guards.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.record_keys.numbers import number_release
from catalog_store.record_keys.place_numbers import TRACK_BITS
from catalog_store.tables import TABLES
from pipeline.linkage.damaged_names import is_rounded_to_minutes
from pipeline.linkage.guards import DURATION_MS, TYPO_DURATION_MS, add_compared_columns, add_verdict, compute_duration_gap, has_same_key
from pipeline.linkage.performers import mark_other_performers
from pipeline.linkage.title_parts import is_part_of_title
from pipeline.linkage.weak_edges import add_roots, drop_contradicted, drop_unclear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.linkage.block_pairs import AtomSource
    from pipeline.linkage.weak_pairs import Standing

FEWEST_AGREEING = 2
"""Other places in which both releases have one recording: one may be the hit that every collection has."""
LEAST_SHARE = 1 / 3
"""Smallest share of the common places that must agree. A platform that damages titles damages many tracks of a release."""
OTHER_LENGTH_MS = 15_000
"""Two tracks that differ more are another list of tracks, and two tracks of equal names that differ less have a wrong length."""
LARGEST_GROUP = 32
"""Releases of one title that are compared: `Greatest Hits` of thousands tell nothing."""
_EDITION = r"[(\[][^()\[\]]*(?:edition|version|deluxe|remaster|expanded|bonus)[^()\[\]]*[)\]]|(?: - |\s)(?:ep|single)\s*$"
_ROWS = pl.Schema({"release": pl.UInt64(), "record": pl.UInt64(), "spot": pl.UInt16()})


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
        components: atom_id, cluster_id by all other edges; an atom that is not among them has none.
        standing: by these components.
        releases: yields platform, release_id, title of all releases.
        tracks: yields release, record, spot (as `place_numbers.select_placed`) of all tracks.
    """
    titles = _read_titles(releases())
    placed = _place_atoms(atoms, titles, standing.anchored, tracks)
    if placed.is_empty():
        return TABLES["edge"].build_empty()
    timed = atoms.read_atom_rows("atom", placed["atom_id"].unique(), ["atom_id", "duration_ms"])
    roots = placed.join(components, on="atom_id", how="left").with_columns(root=pl.coalesce("cluster_id", "atom_id")).drop("cluster_id")
    beside = _pair_places(roots.join(timed, on="atom_id"))
    aligned = _find_aligned(beside)
    anchored = standing.anchored.implode()
    pairs = beside.join(aligned, on=["release", "release_b"]).filter(
        pl.col("root") != pl.col("root_b"), ~(pl.col("atom_id").is_in(anchored) & pl.col("atom_id_b").is_in(anchored))
    )
    ends = (pl.min_horizontal("atom_id", "atom_id_b"), pl.max_horizontal("atom_id", "atom_id_b"))
    pairs = pairs.group_by(a=ends[0], b=ends[1]).agg(
        bits=pl.col("agreeing").max().cast(pl.Float64), spot=pl.col("spot").min(), is_same_list=pl.col("is_same_list").any()
    )
    judged = _judge(pairs, atoms)
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
    known = [rows.select(release=number_release(), title=title) for rows in releases]
    known = [rows.filter(pl.col("title") != "").with_columns(pl.col("title").hash()) for rows in known]
    return pl.concat([pl.DataFrame(schema={"release": pl.UInt64, "title": pl.UInt64}), *known])


def _place_atoms(
    atoms: AtomSource, titles: pl.DataFrame, anchored: pl.Series, tracks: Callable[[], Iterable[pl.DataFrame]]
) -> pl.DataFrame:
    """Return title, release, spot, atom_id of all tracks of the releases that share a title with one that has an atom without a code."""
    several = titles.filter(pl.col("title").is_duplicated())
    several = several.filter(pl.len().over("title") <= LARGEST_GROUP)
    held = several["release"].implode()
    rows = pl.concat([_ROWS.to_frame(), *(rows.select(_ROWS.names()).filter(pl.col("release").is_in(held)) for rows in tracks())])
    records = rows["record"].unique().implode()
    members = [piece.filter(pl.col("record").is_in(records)) for piece in atoms.read_pieces("atom_member", ["record", "atom_id"])]
    placed = rows.join(pl.concat(members), on="record").join(several, on="release").select("title", "release", "spot", "atom_id")
    free = placed.filter(~pl.col("atom_id").is_in(anchored.implode())).select("title").unique()
    return placed.join(free, on="title", how="semi").unique()


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
