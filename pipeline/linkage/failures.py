"""What a person at night must know of a stage of linkage that fails: which records of which platforms it failed on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.linkage.guards import ComparisonError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.paths import BuildPaths

_SHOWN_RECORDS = 10
_MEND = "look at their titles and names in work/staging; until it is mended, take the dump that brought them out of the landing folder"


class LinkageError(Exception):
    """A stage of linkage failed on records that the message names by platform and id."""


@contextmanager
def naming_records(paths: BuildPaths) -> Iterator[None]:
    """Turn a ComparisonError, which knows atoms, into a LinkageError, which knows records."""
    try:
        yield
    except ComparisonError as error:
        members = read_table(TABLES["atom_member"], paths.table("atom_member")).filter(pl.col("atom_id").is_in(error.atoms))
        named = members.unique(["atom_id", "platform"], keep="first", maintain_order=True).head(_SHOWN_RECORDS)
        records = ", ".join(f"{platform}:{external_id}" for platform, external_id in named.select("platform", "external_id").iter_rows())
        raise LinkageError(f"records that cannot be compared: {records} ({error.said}); {_MEND}") from error
