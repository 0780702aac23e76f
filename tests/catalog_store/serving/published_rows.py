"""Snapshots of small tables for tests that compare one night with another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from catalog_store.publisher import publish
from tests.catalog_store.catalog_tables import write_frames

if TYPE_CHECKING:
    from pathlib import Path

Rows = dict[str, list[dict[str, Any]]]

RECORDINGS = 40
NEXT_IDS = {"recording": 500, "artist": 50, "release": 50, "label": 50}


def publish_rows(root: Path, rows: Rows, name: str, *, anew: bool = False) -> Path:
    """Publish the rows as snapshot `name` of the catalog at `root`; return its folder."""
    tables = write_frames(root / "work" / name, rows)
    return publish(tables, root, snapshot_id=name, next_ids=NEXT_IDS, anew=anew).folder
