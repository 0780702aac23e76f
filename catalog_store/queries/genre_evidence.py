"""The evidence for the genres of a recording: the string that decided each, its source and the rule that read it (contract F1).

It comes from the Parquet tables of a snapshot: for people, not for the hot path. The rules belong in genre_rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table

if TYPE_CHECKING:
    from pathlib import Path


class GenreEvidence(NamedTuple):
    """A genre of a recording. `said` is the string that the platform delivered for its `entity_kind`; the rule `rule_id` read it."""

    name: str
    platform: str
    entity_kind: str
    said: str
    rule_id: str


def read_genre_evidence(tables: Path, recording_id: int) -> list[GenreEvidence]:
    """Return the evidence of each genre, most trusted first; empty without genres. `tables` is the folder of a snapshot's tables."""
    nodes = scan_table(TABLES["genre"], tables / "genre").select("genre_id", "name")
    chosen = scan_table(TABLES["recording_genre"], tables / "recording_genre").filter(pl.col("recording_id") == recording_id)
    rows = chosen.join(nodes, on="genre_id").sort("position").select("name", "platform", "entity_kind", "genre", "rule_id").collect()
    return [GenreEvidence(*row) for row in rows.iter_rows()]
