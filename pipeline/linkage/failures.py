"""What a person at night must know of a stage of linkage that fails: which records of which platforms it failed on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.linkage import staged
from pipeline.linkage.unfit_rows import SHOWN_ROWS, UnfitRowsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.paths import BuildPaths

_SOURCE = ("platform", "external_id")
_MEND = "look at their titles and names in work/staging; until it is mended, take the dump that brought them out of the landing folder"


class LinkageError(Exception):
    """A stage of linkage failed on records that the message names by platform and id."""


@contextmanager
def naming_records(paths: BuildPaths) -> Iterator[None]:
    """Turn an UnfitRowsError, which knows atoms or names, into a LinkageError, which knows records."""
    try:
        yield
    except UnfitRowsError as error:
        named = _records(paths, error.named).unique(maintain_order=True).head(SHOWN_ROWS)
        records = ", ".join(f"{platform}:{external_id}" for platform, external_id in named.iter_rows())
        raise LinkageError(f"records that linkage cannot work on: {records} ({error.said}); {_MEND}") from error


def _records(paths: BuildPaths, named: dict[str, list[object]]) -> pl.DataFrame:
    """platform, external_id of what is named as `work_on` says."""
    if named.keys() == set(_SOURCE):
        return pl.DataFrame(named).select(_SOURCE)
    if "name" in named:
        return staged.records_crediting(paths, pl.Series(named["name"], dtype=pl.String), SHOWN_ROWS)
    atoms = pl.Series([atom for ids in named.values() for atom in ids], dtype=pl.Int64)
    members = read_table(TABLES["atom_member"], paths.table("atom_member")).filter(pl.col("atom_id").is_in(atoms.implode()))
    return members.unique(["atom_id", "platform"], keep="first", maintain_order=True).select(_SOURCE)
