"""Fingerprints of atoms: the claims of fingerprints that carry weight, placed on tonight's atoms.

Users attach fingerprints to wrong records, mostly one user at a time and often to a record of another length. So a claim needs two users,
a quarter of the votes of its track, and nearly the length of the atom. A claim that may speak against others needs more (`is_firm`).
Out of scope: the comparison of fingerprints.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_B
from catalog_store.record_keys.numbers import number_record
from catalog_store.tables import FINGERPRINT_STAGING_TABLES, TABLES
from catalog_store.tables.files import render_sql_source
from pipeline.engine.duckdb_session import open_duckdb, stream
from pipeline.linkage.fingerprint_claims import LARGEST_GAP_SECONDS, OWN_FINGERPRINT, create_claims

if TYPE_CHECKING:
    import duckdb

    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.paths import BuildPaths

FEWEST_LINKS = 2
"""One user may have mistagged a file."""
LEAST_SHARE = 0.25
"""Least share of the votes of the record that most users name for the track."""
FIRM_LINKS = 3
SAME_LENGTH_SECONDS = 7
"""AcoustID takes audio for one recording within this gap (FINGERPRINT_MAX_LENGTH_DIFF)."""
MOST_FINGERPRINTS = 3
"""Most fingerprints of an atom, as of a recording of the catalog."""
SCHEMA = pl.Schema(
    {
        "atom_id": pl.Int64(),
        "fingerprint_key": pl.Int64(),
        "fingerprint_id": pl.Int64(),
        "track": pl.Int64(),
        "seconds": pl.Int32(),
        "is_firm": pl.Boolean(),
    }
)

_CLAIM = f"""
SELECT '{CATALOG_B}' AS platform, external_id, NULL::VARCHAR AS isrc, track, fingerprint_id, fingerprint_key, duration_seconds AS seconds,
    link_count, link_count = most AND link_count >= {FIRM_LINKS} AS is_firm
FROM (SELECT *, max(link_count) OVER (PARTITION BY track) AS most FROM said) JOIN best USING (track)
WHERE link_count >= greatest({FEWEST_LINKS}, {LEAST_SHARE} * most)
UNION ALL
SELECT target_platform, external_id, isrc, NULL, fingerprint_id, fingerprint_key, duration_seconds, NULL, true
FROM own_said JOIN {OWN_FINGERPRINT} USING (fingerprint_id)
"""
"""An operator's own file has no track and no votes."""


def find_atom_fingerprints(paths: BuildPaths, atoms: MappedAtoms) -> pl.DataFrame:
    """Return at most MOST_FINGERPRINTS rows of SCHEMA for each atom that has fingerprints, an operator's own first."""
    claims = _read_claims(paths)
    coded = claims.filter(pl.col("isrc").is_not_null())
    placed = [_place_coded(atoms, coded), *_place_named(atoms, claims.filter(pl.col("isrc").is_null()))]
    found = pl.concat([rows.select(*SCHEMA, "link_count") for rows in placed])
    durations = atoms.read_atom_rows("atom", found["atom_id"], ["atom_id", "duration_ms"])
    gap = (pl.col("seconds") - pl.col("duration_ms") / 1000).abs()
    found = found.join(durations, on="atom_id").filter((gap <= LARGEST_GAP_SECONDS).fill_null(value=True))
    found = found.with_columns(is_firm=pl.col("is_firm") & (gap <= SAME_LENGTH_SECONDS).fill_null(value=False))
    order = ["atom_id", pl.col("track").is_not_null(), -pl.col("link_count").fill_null(0), "fingerprint_key", "track", ~pl.col("is_firm")]
    found = found.sort(order).unique(["atom_id", "fingerprint_key"], keep="first", maintain_order=True)
    return found.group_by("atom_id", maintain_order=True).head(MOST_FINGERPRINTS).select(SCHEMA.names())


def _read_claims(paths: BuildPaths) -> pl.DataFrame:
    """Return record (a number), isrc, and the columns of SCHEMA but the atom, with link_count."""
    spill = paths.root / "work" / "spill" / "claims"
    shutil.rmtree(spill, ignore_errors=True)
    try:
        with open_duckdb(spill) as connection:
            _show_staging(connection, paths)
            create_claims(connection)
            # Numbers for ids, a block at a time: the texts of all records are never in memory together.
            blocks = [rows.with_columns(record=number_record()).drop("platform", "external_id") for rows in stream(connection, _CLAIM)]
    finally:
        shutil.rmtree(spill, ignore_errors=True)
    columns = {"record": pl.UInt64(), "isrc": pl.String(), **SCHEMA, "link_count": pl.Int32()}
    del columns["atom_id"]
    return pl.concat([pl.DataFrame(schema=columns), *(rows.select(list(columns)) for rows in blocks)])


def _show_staging(connection: duckdb.DuckDBPyConnection, paths: BuildPaths) -> None:
    for table in (*FINGERPRINT_STAGING_TABLES, TABLES["source_redirect"]):
        folders = paths.staged(table.name)
        # A source that is not staged is an empty table.
        shown = f'CREATE VIEW "{table.name}" AS SELECT * FROM {render_sql_source(*folders)}' if folders else table.render_ddl()
        connection.execute(shown)


def _place_coded(atoms: MappedAtoms, claims: pl.DataFrame) -> pl.DataFrame:
    """Place the claims of files that are mapped by a code, where one atom alone has the code: of several, linkage has yet to choose."""
    holders = atoms.read_rows("atom_isrc", ["isrc", "atom_id"], pl.col("isrc").is_in(claims["isrc"].unique().implode()))
    return claims.join(holders.filter(pl.len().over("isrc") == 1), on="isrc")


def _place_named(atoms: MappedAtoms, claims: pl.DataFrame) -> list[pl.DataFrame]:
    """Place the claims of records, a stretch of atoms at a time."""
    return [claims.join(rows, on="record") for rows in atoms.read_pieces("atom_member", ["record", "atom_id"])]
