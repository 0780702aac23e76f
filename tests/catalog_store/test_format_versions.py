"""Tests of the formats of two program versions: which each reads, and the upgrade and downgrade of a running server."""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from audio_recognition.index import layout as recognition
from catalog_store import snapshot
from catalog_store.errors import NoSnapshotError, SnapshotInvalidError
from catalog_store.format_versions import require_readable
from catalog_store.lists import list_format
from catalog_store.live_snapshot import LiveSnapshot
from catalog_store.publisher import publish, rollback
from catalog_store.reader import Catalog, open_catalog
from catalog_store.search import layout as search
from catalog_store.search import search_build, search_index
from catalog_store.serving import schema as serving
from catalog_store.snapshot_pull import pull
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "snapshot_format.md").read_text()
FORMATS = {"manifest": snapshot, "serving": serving, "lists": list_format, "search": search, "recognition": recognition}
OLD, NEW = search.FORMAT_VERSION, search.FORMAT_VERSION + 1


def test_every_written_version_is_read_and_is_on_the_page() -> None:
    section = PAGE.partition("## Format versions")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| (\w+) \| [^|]+ \| (\d+) \| ([\d ,]+) \|$", section, re.MULTILINE)
    stated = [(name, str(one.FORMAT_VERSION), ", ".join(map(str, sorted(one.READ_VERSIONS)))) for name, one in FORMATS.items()]
    assert sorted(listed) == sorted(stated)
    assert all(one.FORMAT_VERSION in one.READ_VERSIONS for one in FORMATS.values())


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (8, r"/x has search format 8, this program reads 6 and 7: update this program, or roll back to an older snapshot"),
        (5, r"/x has search format 5, this program reads 6 and 7: rebuild the catalog"),
        ("7", r"/x has search format 7, this program reads 6 and 7: rebuild the catalog"),
    ],
)
def test_unreadable_version_is_refused_with_a_remedy(found: object, message: str) -> None:
    require_readable(Path("/x"), "search", 6, {6, 7})
    with pytest.raises(SnapshotInvalidError, match=f"^{message}$"):
        require_readable(Path("/x"), "search", found, {6, 7})


@contextmanager
def program(version: int) -> Iterator[None]:
    """Run as the program that writes this search format, and reads it and the one before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_build, "FORMAT_VERSION", version)
        patch.setattr(search_index, "READ_VERSIONS", {version - 1, version})
        yield


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a catalog in which the old program published `old`, then the new one `new`; `old` is live. No test writes to it."""
    folder = tmp_path_factory.mktemp("published")
    tables = make_tables(folder / "tables", 5)
    for version, name in ((OLD, "old"), (NEW, "new")):
        with program(version):
            publish(tables, folder / "catalog", snapshot_id=name, next_ids={"recording": 100})
    rollback(folder / "catalog", "old")
    return folder / "catalog"


@pytest.fixture
def catalog(published: Path, tmp_path: Path) -> Path:
    shutil.copytree(published, tmp_path / "catalog", symlinks=True)
    return tmp_path / "catalog"


def start_server(catalog: Path) -> LiveSnapshot[Catalog]:
    server = LiveSnapshot(
        catalog,
        open_catalog,
        what="snapshot",
        contents=True,
        absent=lambda: NoSnapshotError("none"),
        last_served=catalog.parent / "last-served",
    )
    server.look()
    return server


def require_serves(server: LiveSnapshot[Catalog], name: str) -> None:
    with server.hold() as opened:
        assert opened.snapshot_id == name
        assert opened.read_track_body(1)


def test_upgrade_and_rollback_of_a_running_server_never_leave_it_without_a_catalog(catalog: Path) -> None:
    with program(OLD):
        server = start_server(catalog)
        require_serves(server, "old")
        # The builder is updated before the server.
        rollback(catalog, "new")
        server.look()
        require_serves(server, "old")
        assert server.read_status().is_refused
        assert f"search format {NEW}, this program reads {OLD - 1} and {OLD}: update this program" in str(server.refused)
        server.close()
    with program(NEW):
        server = start_server(catalog)
        require_serves(server, "new")
        # The way back: first the catalog, which the new program reads in the version before, too.
        rollback(catalog, "old")
        server.look()
        require_serves(server, "old")
        assert not server.read_status().is_refused
        server.close()
    with program(OLD):
        server = start_server(catalog)
        require_serves(server, "old")
        server.close()


def test_program_that_goes_back_before_the_catalog_serves_again_after_the_rollback(catalog: Path) -> None:
    rollback(catalog, "new")
    with program(NEW):
        start_server(catalog).close()
    with program(OLD):
        server = start_server(catalog)
        with pytest.raises(NoSnapshotError), server.hold():
            pass
        rollback(catalog, "old")
        server.look()
        require_serves(server, "old")
        server.close()


def test_old_node_keeps_its_snapshot_until_its_program_is_new(catalog: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    with program(OLD):
        pull(str(catalog), node)
        rollback(catalog, "new")
        with pytest.raises(SnapshotInvalidError, match="update this program"):
            pull(str(catalog), node)
        with open_catalog(node) as opened:
            assert opened.snapshot_id == "old"
    with program(NEW):
        assert pull(str(catalog), node).snapshot == "new"


def test_program_that_skips_a_version_refuses(catalog: Path) -> None:
    with program(NEW + 1), pytest.raises(SnapshotInvalidError, match="rebuild the catalog"):
        open_catalog(catalog)
