"""Errors of linkage for operators: they name the platform and the id of the records on which a stage fails."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.linkage import staged_records
from pipeline.linkage.failing_rows import SHOWN_ROWS, FailingRowsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.paths import BuildPaths

_SOURCE = ("platform", "external_id")
_REMEDY = "look at their titles and names in work/staging; until the fault is corrected, remove their dump from the landing folder"


class LinkageError(Exception):
    """A stage of linkage failed on records that the message names by platform and id."""


@contextmanager
def report_failing_records(paths: BuildPaths) -> Iterator[None]:
    """Turn a FailingRowsError, which knows atoms or names, into a LinkageError, which knows records."""
    try:
        yield
    except FailingRowsError as error:
        named = _find_records(paths, error.named).unique(maintain_order=True).head(SHOWN_ROWS)
        records = ", ".join(f"{platform}:{external_id}" for platform, external_id in named.iter_rows())
        raise LinkageError(f"linkage fails on these records: {records} ({error.cause}); {_REMEDY}") from error


def _find_records(paths: BuildPaths, named: dict[str, list[object]]) -> pl.DataFrame:
    """Return platform, external_id of the rows that the columns of `run_on_rows` identify."""
    if named.keys() == set(_SOURCE):
        return pl.DataFrame(named).select(_SOURCE)
    # A name may be on thousands of records; the first few are enough to find the dump.
    if "name" in named:
        return staged_records.find_records_crediting(paths, pl.Series(named["name"], dtype=pl.String), SHOWN_ROWS)
    atoms = pl.Series([atom for ids in named.values() for atom in ids], dtype=pl.Int64)
    members = read_table(TABLES["atom_member"], paths.table("atom_member")).filter(pl.col("atom_id").is_in(atoms.implode()))
    # One record of each platform: any of their dumps may hold the odd value.
    return members.unique(["atom_id", "platform"], keep="first", maintain_order=True).select(_SOURCE)
