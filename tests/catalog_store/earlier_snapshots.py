"""Snapshots that a test of publish, rollback or prune finds: what they are called, which is live, and how one is damaged."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from catalog_store import publisher
from catalog_store.published_snapshots import list_snapshots
from catalog_store.reader import open_catalog
from catalog_store.snapshot import MANIFEST, Manifest, StoredTable, describe_file

if TYPE_CHECKING:
    from datetime import tzinfo
    from pathlib import Path

    import pytest


class PublishEarlier(Protocol):
    """Lays down a catalog into which these snapshots were published, one after the other: what comes before a test begins."""

    def __call__(self, root: Path, *names: str, recording: int = 21) -> None: ...


def ids(root: Path) -> list[str]:
    return [snapshot.id for snapshot in list_snapshots(root)]


def live(root: Path) -> str:
    with open_catalog(root) as catalog:
        return catalog.snapshot_id


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def lay_manifest(root: Path, snapshot_id: str, *, sequence: int = 0, second: int = 0, **next_ids: int) -> Path:
    """Write a snapshot that is hardly more than its manifest; one without a sequence number has no seal."""
    folder = root / "snapshots" / snapshot_id
    folder.mkdir(parents=True)
    (folder / "catalog.duckdb").write_text(snapshot_id)
    file = describe_file(folder, folder / "catalog.duckdb")
    tables = {"recording": StoredTable(0, 0, ())}
    made_at = f"2026-01-01T00:00:{second:02d}Z"
    manifest = Manifest("music-catalog-snapshot", 1, snapshot_id, made_at, "0" * 16, tables, next_ids, file, (), sequence=sequence)
    (folder / MANIFEST).write_bytes((manifest.add_seal() if sequence else manifest).encode())
    return folder


def make_current(root: Path, snapshot_id: str) -> None:
    (root / "current").unlink(missing_ok=True)
    (root / "current").symlink_to(f"snapshots/{snapshot_id}")


def set_clock(monkeypatch: pytest.MonkeyPatch, year: int) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls(year, 1, 1, tzinfo=tz)

    monkeypatch.setattr(publisher, "datetime", Clock)


def damage(path: Path, text: bytes, instead: bytes) -> None:
    content = path.read_bytes()
    assert content.count(text) >= 1
    path.write_bytes(content.replace(text, instead, 1))
