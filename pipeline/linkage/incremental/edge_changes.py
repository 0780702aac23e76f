"""Edges of a night that builds on a snapshot.

Edges from codes and typing errors are taken from the base unless a changed atom shares their code, artist or title. Pairs around changed
atoms are compared again, some artists, titles or codes at a time. Other kinds are few, or cheap, and are found again (edge_evidence.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.linkage import mapped_atoms, staged_records
from pipeline.linkage.edge_evidence import count_position_buckets, find_all_positions, has_positions, place_codes, settle_typo_edges
from pipeline.linkage.incremental.changed_atoms import ATOM_COLUMNS, ChangedAtoms
from pipeline.linkage.incremental.position_changes import Before, find_changed_positions
from pipeline.linkage.incremental.typo_changes import search_artists, search_titles
from pipeline.linkage.isrc_edges import find_isrc_edges
from pipeline.linkage.key_edges import KEY_COLUMNS
from pipeline.linkage.release_positions import NO_POSITIONS

if TYPE_CHECKING:
    from pipeline.linkage.incremental.night import Night
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.linkage.release_positions import Positions
    from pipeline.paths import BuildPaths


def find_changed_code_and_typo_edges(paths: BuildPaths, atoms: MappedAtoms, night: Night, buckets: int) -> pl.DataFrame:
    """Return all edges from codes and typing errors: those of the base that no change can reach, and those around changed atoms.

    `buckets`: so many that a bucket of all atoms fits into memory.
    """
    changed = ChangedAtoms.read(paths, night, buckets)
    searches = [search_artists(changed), search_titles(changed)]
    codes = changed.read_columns("atom_isrc", ["isrc"]).unique()
    by_code = _find_code_edges(changed, codes["isrc"])
    base = night.read("edge")
    # The evidence of a code's edge is the code, so all edges of a touched code are dropped and found again.
    kept = base.filter(pl.col("kind") == "isrc").join(codes, left_on="evidence", right_on="isrc", how="anti")
    touched = pl.concat([changed.gone, changed.made]).implode()
    typos = base.filter(pl.col("kind") == "typo", ~pl.col("atom_id_a").is_in(touched), ~pl.col("atom_id_b").is_in(touched))
    for search in searches:
        typos = search.drop_searched(typos)
    return pl.concat([kept, typos, *by_code, settle_typo_edges(atoms, [rows for search in searches for rows in search.candidates])])


def _find_code_edges(changed: ChangedAtoms, codes: pl.Series) -> list[pl.DataFrame]:
    """Return the edges between atoms that share one of these codes."""
    # Codes of both sides: an edge is also lost when the best-supported atom of its code goes.
    claims = changed.atoms.read_rows("atom_isrc", where=pl.col("isrc").is_in(codes.implode()))
    claims = claims.filter(pl.col("isrc").hash().is_duplicated())
    places = place_codes(changed.count_buckets(claims.height))
    return [
        find_isrc_edges(changed.atoms.read_atom_rows("atom", some["atom_id"], ATOM_COLUMNS), some.drop("bucket"))
        for some in claims.with_columns(bucket=places).partition_by("bucket")
    ]


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
