"""Edges from release positions: records of several platforms that stand in one place (disc, track) of releases with one barcode.

A barcode names a product and a place on it names a recording, whatever its title is spelt like and whichever code it carries there. But
barcodes are mistyped and reused, and some platforms number otherwise: names must agree as for a shared code, durations as closely as for a
typing error. A platform that has several records in one place says nothing about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from pipeline.engine.duckdb_session import frame
from pipeline.linkage.guards import TYPO_DURATION_MS, compared, duration_gap, verdict

if TYPE_CHECKING:
    import duckdb

_PLACES = """
WITH release AS (
    SELECT platform, release_id, gtin FROM {releases} WHERE gtin IS NOT NULL
), shared AS (
    SELECT gtin FROM release GROUP BY gtin HAVING min(platform) < max(platform)
), place AS (
    SELECT r.gtin, coalesce(t.disc_number, 1) AS disc, t.track_number AS track, t.platform, m.atom_id
    FROM (FROM release SEMI JOIN shared USING (gtin)) r
    JOIN (SELECT * FROM {tracks} WHERE track_number IS NOT NULL) t USING (release_id, platform)
    JOIN {members} m USING (external_id, platform)
)
SELECT gtin || ' ' || disc || '-' || track AS place, platform, atom_id FROM place
SEMI JOIN (SELECT gtin, disc, track FROM place GROUP BY ALL HAVING min(atom_id) < max(atom_id)) USING (gtin, disc, track)
GROUP BY ALL
"""


def contested_places(connection: duckdb.DuckDBPyConnection, releases: str, tracks: str, members: str) -> pl.DataFrame:
    """Places on which several atoms stand: place, platform, atom_id; most hold one already.

    The others name SQL sources: rows of `source_release`, `source_release_track` and `atom_member`, of all platforms.
    """
    connection.execute("SET disabled_optimizers = 'join_order'")  # see build/workbench.py: it joins on `platform` alone
    return frame(connection, _PLACES.format(releases=releases, tracks=tracks, members=members))


def position_edges(atoms: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Guarded edges of kind `position`, not sorted; an atom pair stands once.

    Args:
        atoms: rows of `atom`, at least those in the places.
        places: place (text for a reader), platform, atom_id; any subset that holds all rows of each of its places.
    """
    told = places.unique().filter(pl.len().over("place", "platform") == 1)
    support = told.group_by("place", "atom_id").agg(platforms=pl.len())
    support = support.sort("place", -pl.col("platforms").cast(pl.Int64), "atom_id")
    support = support.with_columns(best=pl.col("atom_id").first().over("place")).filter(pl.col("best") != pl.col("atom_id"))
    pairs = support.select(a=pl.min_horizontal("best", "atom_id"), b=pl.max_horizontal("best", "atom_id"), evidence="place")
    pairs = pairs.sort("a", "b", "evidence").unique(["a", "b"], keep="first", maintain_order=True)
    near = (duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)
    passed = verdict(compared(pairs, atoms)).filter(pl.col("reason").is_null(), near)
    return TABLES["edge"].conform(passed.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("position"), score="score", evidence="evidence"))
