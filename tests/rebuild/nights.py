"""Shared steps of the tests of whole builds: copies of the built world, and hashes of the parts that must not change."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

from catalog_store.published_snapshots import list_snapshots, read_live_snapshot
from catalog_store.snapshot import verify
from catalog_store.snapshot_invariants import require_invariants

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld


def require_consistent(catalog: Path) -> None:
    """Require that every published snapshot is whole and consistent, and that `current` names one of them."""
    published = list_snapshots(catalog)
    assert [snapshot.id for snapshot in published if snapshot.is_current] == [read_live_snapshot(catalog).id]
    for snapshot in published:
        require_invariants(snapshot.folder, verify(snapshot.folder))


def table_hashes(catalog: Path) -> dict[str, str]:
    """Return hashes of the published tables and of the recognition index.

    All snapshots of the catalog must be consistent.
    """
    require_consistent(catalog)
    live = catalog / "current"
    files = [*sorted((live / "tables").rglob("*.parquet")), *sorted((live / "serving" / "recognition").rglob("*.*"))]
    return {str(path.relative_to(live)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def copy_of(built: BuiltWorld, place: Path) -> tuple[Path, Path]:
    """Return copies of the dumps and the catalog, for a test of its own."""
    dumps, catalog = place / "dumps", place / "catalog"
    shutil.copytree(built.dumps, dumps)
    shutil.copytree(built.catalog, catalog, symlinks=True)
    return dumps, catalog


def published_copy(built: BuiltWorld, place: Path) -> Path:
    """Return a copy with only the snapshots. It suffices for a server, and a build over it begins anew."""
    catalog = place / "catalog"
    shutil.copytree(built.catalog / "snapshots", catalog / "snapshots")
    (catalog / "current").symlink_to((built.catalog / "current").readlink())
    return catalog


def newest(dumps: Path, platform: str) -> Path:
    """Return the newest dump of a platform."""
    return max(path for path in (dumps / platform).iterdir() if path.is_dir())
