"""A catalog root with several snapshots, for tests of followers of `current`."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from catalog_store.publisher import publish, rollback
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from pathlib import Path

EDITIONS = ("first", "second", "third")


def publish_editions(folder: Path) -> Path:
    """Publish EDITIONS below `folder`, the first of them live; tests copy the root."""
    for seed, name in enumerate(EDITIONS):
        tables = make_tables(folder / "tables" / name, 30, seed)
        publish(tables, folder / "catalog", snapshot_id=name, next_ids={"recording": 1000, "artist": 50})
    rollback(folder / "catalog", EDITIONS[0])
    return folder / "catalog"


def copied(editions: Path, folder: Path) -> Path:
    """Return a copy of the root below `folder`, to be changed."""
    shutil.copytree(editions, folder / "catalog", symlinks=True)
    return folder / "catalog"
