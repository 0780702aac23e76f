"""The valid rows of the atom tables. A night adds new atoms and lists deleted ones, instead of rewriting all.

An atom never changes: its id is a hash of its content. So the parts of `atom`, `atom_member` and `atom_isrc` are reused from night to
night, parts with the new atoms are added, and table `atom_gone` lists the atoms that no longer count. Every reader of the three goes
through this module. pipeline/linkage/incremental/atom_changes.py decides when deleted rows are removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import render_sql_source, scan_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Place = Callable[[str], Path]
    """Returns the folder of a table."""

ATOM_TABLES = ("atom", "atom_member", "atom_isrc")


def read_gone_atoms(place: Place) -> pl.Series:
    """Return atom_id of the atoms in the tables that no longer count; none when the table is missing (an older snapshot)."""
    table = TABLES["atom_gone"]
    folder = place(table.name)
    rows = scan_table(table, folder).collect() if folder.is_dir() else table.build_empty()
    return rows["atom_id"]


def scan_live_atoms(name: str, place: Place) -> pl.LazyFrame:
    """Return the valid rows of one of ATOM_TABLES, in no order."""
    rows, gone = scan_table(TABLES[name], place(name)), read_gone_atoms(place)
    return rows.filter(~pl.col("atom_id").is_in(gone.implode())) if len(gone) else rows


def render_live_atoms_sql(name: str, place: Place) -> str:
    """Return the DuckDB query of the valid rows."""
    gone = place("atom_gone")
    without = f" WHERE atom_id NOT IN (SELECT atom_id FROM {render_sql_source(gone)})" if gone.is_dir() else ""
    return f"SELECT * FROM {render_sql_source(place(name))}{without}"
