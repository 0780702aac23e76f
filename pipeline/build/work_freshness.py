"""Check that the work folder still holds the published tables, before a part of the build is run again on its own.

A build that stopped at the gate leaves tables that no gate accepted; a part run over them would publish them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.snapshot import compute_schema_version, hash_file
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from catalog_store.snapshot import Manifest
    from catalog_store.tables import Table
    from pipeline.paths import BuildPaths


class StaleWorkError(Exception):
    """The work folder is not that of the live snapshot; the message names a table and the remedy."""


def require_live_work(paths: BuildPaths, tables: Iterable[Table]) -> None:
    """Raise StaleWorkError unless each of `tables` is in the work folder as it was published, in the columns of this program.

    NoSnapshotError before the first publish.
    """
    live = read_live_snapshot(paths.root)
    if not has_columns_of_today(live.manifest):
        raise StaleWorkError(
            f"the tables of the live snapshot {live.id} have other columns than this program writes: run a whole build first "
            "(the job nightly_build)"
        )
    for table in tables:
        stored = live.manifest.tables.get(table.name)
        folder = paths.table(table.name)
        published = [(live.folder / file.path, file.sha256) for file in stored.files] if stored else []
        if not folder.is_dir() or not _is_same(list_parts(folder), published):
            raise StaleWorkError(
                f"table {table.name} of the work folder is not that of the live snapshot {live.id}: run a whole build first "
                "(the job nightly_build)"
            )


def has_columns_of_today(manifest: Manifest) -> bool:
    """Return whether all tables of a snapshot have the columns that this program writes."""
    return manifest.tables.keys() <= TABLES.keys() and manifest.schema_version == compute_schema_version(manifest.tables)


def _is_same(working: list[Path], published: list[tuple[Path, str]]) -> bool:
    """Return whether both lists hold the same files in the same order. A published part has a name of its own."""
    # A snapshot is made of hard links, so mostly both are one file. After a copy of the catalog they are two: then the contents count.
    return len(working) == len(published) and all(
        there.is_file() and (here.samefile(there) or (here.stat().st_size == there.stat().st_size and hash_file(here) == digest))
        for here, (there, digest) in zip(working, published, strict=True)
    )
