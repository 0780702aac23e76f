"""Which rows of the tables of atoms count: a night adds what is new and names what is gone, instead of writing everything again.

An atom never changes: its id is made of all that it holds. So the parts of `atom`, `atom_member` and `atom_isrc` are taken over from night
to night, one part with the new atoms is added, and table `atom_gone` names the atoms that count no more. Whoever reads one of the three
reads it through here. What must not live here: when the rows that are gone are cleared away (pipeline/linkage/incremental/atom_changes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table, sql_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Place = Callable[[str], Path]
    """Says where the folder of a table is."""

ATOM_TABLES = ("atom", "atom_member", "atom_isrc")


def gone_atoms(place: Place) -> pl.Series:
    """atom_id of the atoms that stand in the tables and count no more; none where the table is missing (an older snapshot)."""
    table = TABLES["atom_gone"]
    folder = place(table.name)
    rows = scan_table(table, folder).collect() if folder.is_dir() else table.empty()
    return rows["atom_id"]


def live_atoms(name: str, place: Place) -> pl.LazyFrame:
    """The rows of one of ATOM_TABLES that count, in no order."""
    rows, gone = scan_table(TABLES[name], place(name)), gone_atoms(place)
    return rows.filter(~pl.col("atom_id").is_in(gone.implode())) if len(gone) else rows


def live_atoms_sql(name: str, place: Place) -> str:
    """The same as a DuckDB query."""
    gone = place("atom_gone")
    without = f" WHERE atom_id NOT IN (SELECT atom_id FROM {sql_source(gone)})" if gone.is_dir() else ""
    return f"SELECT * FROM {sql_source(place(name))}{without}"
