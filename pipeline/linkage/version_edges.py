"""Edges between a record without a version word and the version whose code it has: `Title` beside `Title (Imanbek Remix)`.

A missing word proves nothing, and a shared code does not join a song with its remix. Three signs together tell that the word was left out:
the lengths are equal, the record stands alone, and the song without the word is known at another length. Out of scope: codes
whose names agree (isrc_edges.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.connected_components import find_linked_atoms
from pipeline.linkage.generic_titles import is_generic_title
from pipeline.linkage.guards import DURATION_MS, can_be_one_recording, is_length_difference
from pipeline.linkage.isrc_edges import read_shared_claims

if TYPE_CHECKING:
    from pipeline.linkage.block_pairs import AtomSource

VERSION_MS = 1_500
"""Milliseconds between the lengths of one version on two platforms, of which one gives whole seconds."""
SAME_LENGTH = r"(?:^|\+)(?:karaoke|instrumental|acappella|clean|mono|stereo|dub)(?:$|[+:])"
"""Versions that are as long as the song: an equal length says nothing about them."""
CLAIMS_AT_A_TIME = 1_000_000
"""Claims of shared codes whose atoms are compared at a time. All those of 30 million recordings took 1.4 GB with their names."""
_NAMES = ("artist_key", "title_key")
_COLUMNS = ["atom_id", *_NAMES, "variant", "duration_ms", "record_count"]


def find_version_edges(atoms: AtomSource, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return these edges, of kind `version`. `atoms`: table `atom` with the number `title`. `pairs`: as `pair_versions` returns."""
    pairs = pairs.filter(pl.col("record_count") == 1, ~pl.col("variant_version").str.contains(SAME_LENGTH))
    pairs = pairs.filter((pl.col("duration_ms") - pl.col("duration_ms_version")).abs() <= VERSION_MS)
    if pairs.is_empty():
        return TABLES["edge"].build_empty()
    pairs = pairs.join(_find_songs(atoms, pairs), on=_NAMES)
    is_elsewhere = (pl.col("song_ms") - pl.col("duration_ms")).abs() > DURATION_MS
    pairs = pairs.filter(is_elsewhere).unique(["atom_id", "atom_id_version", "isrc"])
    ends = ("atom_id", "atom_id_version")
    return TABLES["edge"].conform(
        pairs.select(
            atom_id_a=pl.min_horizontal(ends), atom_id_b=pl.max_horizontal(ends), kind=pl.lit("version"), score=pl.lit(1.0), evidence="isrc"
        )
    )


def list_doubtful_atoms(pairs: pl.DataFrame) -> pl.Series:
    """Return the ids of atoms of unknown duration and without a version word whose code a version of their names has.

    Without a length, nothing tells whether the code is wrong or the word is missing. `pairs`: as `pair_versions` returns.
    """
    return pairs.filter(pl.col("duration_ms").is_null())["atom_id"].unique().sort()


def pair_versions(atoms: AtomSource) -> pl.DataFrame:
    """Return the atoms without a version word beside the versions of their code and names, which no length can make one recording.

    `atoms`: tables `atom` and `atom_isrc`. Returned are _COLUMNS of the atom, isrc, and _COLUMNS of the version with suffix `_version`.
    """
    claims = read_shared_claims(atoms, ["atom_id", "isrc"])
    parts = 1 + claims.height // CLAIMS_AT_A_TIME
    return pl.concat(_pair_claimants(atoms, claims.filter(pl.col("isrc").hash() % parts == part)) for part in range(parts))


def _pair_claimants(atoms: AtomSource, claims: pl.DataFrame) -> pl.DataFrame:
    """Return the same among the atoms of these claims: all of some codes."""
    rows = atoms.read_atom_rows("atom", claims["atom_id"].unique(), _COLUMNS)
    rows = rows.filter(pl.col("artist_key") != "", ~is_generic_title(pl.col("title_key"))).join(claims, on="atom_id")
    plain, versions = rows.filter(pl.col("variant") == ""), rows.filter(pl.col("variant") != "")
    pairs = plain.join(versions, on=["isrc", *_NAMES], suffix="_version")
    return pairs.filter(_is_another_recording(pairs["variant_version"]))


def _find_songs(atoms: AtomSource, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return artist_key, title_key and song_ms of all timed atoms without a version that bear the names of a pair."""
    titles = pairs["title_key"].hash().unique().implode()
    named = [rows.filter(pl.col("title").is_in(titles))["atom_id"] for rows in atoms.read_pieces("atom", ["atom_id", "title"])]
    found = atoms.read_atom_rows("atom", pl.concat(named), _COLUMNS).filter(pl.col("variant") == "", pl.col("duration_ms").is_not_null())
    return found.select(*_NAMES, song_ms="duration_ms").join(pairs.select(_NAMES).unique(), on=_NAMES, how="semi")


def adopt_versions(atoms: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Give the atoms without a version word that an edge joins to a version the variant of that version.

    Args:
        atoms: atom_id, variant and any further columns.
        edges: rows of `edge` of kind `version`.
    """
    if edges.is_empty():
        return atoms
    ends = edges.select("atom_id_a", "atom_id_b").unique()
    variants = atoms.select("atom_id", "variant").join(find_linked_atoms(edges), on="atom_id", how="semi")
    found = []
    for one, other in (("atom_id_a", "atom_id_b"), ("atom_id_b", "atom_id_a")):
        plain = variants.filter(pl.col("variant") == "").select(pl.col("atom_id").alias(one))
        versions = variants.filter(pl.col("variant") != "").rename({"atom_id": other})
        found.append(ends.join(plain, on=one, how="semi").join(versions, on=other).select(atom_id=one, adopted="variant"))
    adopted = pl.concat(found).unique()
    # The smallest of several: no order decides.
    adopted = adopted.filter(_is_another_recording(adopted["adopted"])).group_by("atom_id").agg(pl.col("adopted").min())
    atoms = atoms.join(adopted, on="atom_id", how="left", maintain_order="left")
    return atoms.with_columns(variant=pl.coalesce("adopted", "variant")).drop("adopted")


def _is_another_recording(versions: pl.Series) -> pl.Series:
    """Mark the versions that no record without a version word can be by its names and length alone."""
    known = {version: not (can_be_one_recording("", version) or is_length_difference("", version)) for version in versions.unique()}
    return pl.Series([known[version] for version in versions], dtype=pl.Boolean)
