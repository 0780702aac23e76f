"""Edges of a night that builds on a snapshot.

Edges from codes and typing errors are taken from the base unless a changed atom shares their code, artist or title. Pairs around changed
atoms are compared again. Other kinds are few, or cheap, and are found again (edge_evidence.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.linkage import mapped_atoms, staged_records
from pipeline.linkage.edge_evidence import count_position_buckets, find_all_positions, has_positions, settle_typo_edges
from pipeline.linkage.incremental.position_changes import Before, find_changed_positions
from pipeline.linkage.incremental.typo_changes import (
    find_changed_artist_edges,
    find_changed_title_edges,
    find_toggled_blocks,
    has_common_block,
)
from pipeline.linkage.isrc_edges import find_isrc_edges
from pipeline.linkage.key_edges import KEY_COLUMNS
from pipeline.linkage.release_positions import NO_POSITIONS
from pipeline.linkage.typo_edges import find_same_artist_edges, find_same_title_edges

if TYPE_CHECKING:
    from pipeline.linkage.incremental.night import Night
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.linkage.release_positions import Positions
    from pipeline.paths import BuildPaths


def find_changed_code_and_typo_edges(paths: BuildPaths, atoms: MappedAtoms, night: Night) -> pl.DataFrame:
    """Return all edges from codes and typing errors: those of the base that no change can reach, and those around changed atoms."""
    change = read_table(TABLES["atom_change"], paths.table("atom_change"))
    changes = [(where, change.filter(pl.col("change") == kind)["atom_id"]) for where, kind in ((night.atoms, "gone"), (atoms, "made"))]
    # Codes of both sides: an edge is also lost when the best-supported atom of its code goes.
    codes = pl.concat([where.read_atom_rows("atom_isrc", ids, ["isrc"]) for where, ids in changes]).unique()
    claims = atoms.read_rows("atom_isrc", where=pl.col("isrc").is_in(codes["isrc"].implode()))
    former, latter = (where.read_atom_rows("atom", ids) for where, ids in changes)
    changed = pl.concat([former, latter])
    # Atoms that are gone count too: without them a block may fall below the limit and be searched tonight.
    near = atoms.read_rows("atom", where=has_common_block(changed))
    titled = near.filter(pl.col("title").is_in(changed["title"].implode()))
    others = near.filter(~pl.col("atom_id").is_in(latter["atom_id"].implode()))
    toggled = find_toggled_blocks(pl.concat([others, former]), near)
    candidates = [find_changed_artist_edges(near, latter["atom_id"]), find_changed_title_edges(titled, latter["atom_id"])]
    base = night.read("edge")
    # The evidence of a code's edge is the code, so all edges of a touched code are dropped and found again.
    by_code = base.filter(pl.col("kind") == "isrc").join(codes, left_on="evidence", right_on="isrc", how="anti")
    touched = change["atom_id"].implode()
    typos = base.filter(pl.col("kind") == "typo", ~pl.col("atom_id_a").is_in(touched), ~pl.col("atom_id_b").is_in(touched))
    # The whole artist or title is searched, because pairs of unchanged atoms appear or vanish.
    if toggled.height:
        whole = {by: toggled.filter(pl.col("by") == by)["name"].unique().implode() for by in ("artist_key", "title_key")}
        in_artist, in_title = (pl.col(name).is_in(names) for name, names in whole.items())
        crowd = atoms.read_rows("atom", where=in_artist | in_title)
        candidates += [find_same_artist_edges(crowd.filter(in_artist)), find_same_title_edges(crowd.filter(in_title))]
        typos = _drop_edges_within(typos, crowd, whole)
    claiming = atoms.read_atom_rows("atom", claims["atom_id"])
    return pl.concat([by_code, typos, find_isrc_edges(claiming, claims), settle_typo_edges(atoms, candidates)])


def _drop_edges_within(typos: pl.DataFrame, crowd: pl.DataFrame, whole: dict[str, pl.Series]) -> pl.DataFrame:
    """Return `typos` without the edges within these artists and titles (`whole`), which are searched completely; `crowd`: their atoms."""
    for end in ("a", "b"):
        names = crowd.select(pl.col("atom_id", "artist_key", "title_key").name.prefix(f"{end}_"))
        typos = typos.join(names, left_on=f"atom_id_{end}", right_on=f"{end}_atom_id", how="left")
    in_artist = (pl.col("a_artist_key") == pl.col("b_artist_key")) & pl.col("a_artist_key").is_in(whole["artist_key"])
    in_title = (pl.col("a_artist_key") != pl.col("b_artist_key")) & pl.col("a_title_key").is_in(whole["title_key"])
    in_whole = in_artist | in_title
    return typos.filter(~in_whole.fill_null(value=False)).select(TABLES["edge"].column_names)


def read_untimed_keys(atoms: MappedAtoms) -> pl.DataFrame:
    """Return KEY_COLUMNS of the atoms without duration and of all atoms that share a key with them."""
    keys = atoms.read_rows("atom", ["key"], pl.col("duration_ms").is_null())["key"]
    return atoms.read_rows("atom", KEY_COLUMNS, pl.col("key").is_in(keys.unique().implode()))


def find_positions_tonight(paths: BuildPaths, atoms: MappedAtoms, night: Night) -> Positions:
    """Return the contested positions; those of barcodes that did not change come from the base, with their verdicts."""
    if not has_positions(paths):
        return NO_POSITIONS
    known = mapped_atoms.read_mapped_positions(night.files, night.find_folder)
    if known is None:
        return find_all_positions(paths, atoms)
    changed = read_table(TABLES["atom_change"], paths.table("atom_change"))["atom_id"]
    # Base and tonight: a record that left its atom and one that joined another both move a position.
    records = [where.read_atom_rows("atom_member", changed, ["record"])["record"] for where in (night.atoms, atoms)]
    return find_changed_positions(
        lambda: staged_records.read_barcodes(paths),
        lambda: staged_records.read_tracks(paths),
        lambda: atoms.read_pieces("atom_member", ["record", "atom_id"]),
        Before(known, pl.concat(records).unique()),
        buckets=count_position_buckets(paths),
    )
