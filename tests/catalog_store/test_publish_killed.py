"""Tests of a publish under kill -9: a child process dies at one of its own file operations, counted by an audit hook."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest

from catalog_store.published_snapshots import list_snapshots
from catalog_store.publisher import publish
from catalog_store.reader import open_catalog
from catalog_store.snapshot import verify
from tests.catalog_store.catalog_tables import make_tables
from tests.waiting import PATIENCE_SECONDS

FILE_OPERATIONS = frozenset(
    {"open", "os.mkdir", "os.link", "os.symlink", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "sqlite3.connect"}
)
POINTS = 6


@pytest.fixture(scope="module")
def children() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["catalog_store.publisher", __name__])
    return context


def publish_and_die(tables: dict[str, Path], root: Path, operation: int | None, counted: str | None) -> None:
    """Publish `second`; kill -9 just before file operation number `operation` below `root`, or write their count to `counted`."""
    seen = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event in FILE_OPERATIONS and str(root) in str(arguments):
            seen += 1
            if seen == operation:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    publish(tables, root, snapshot_id="second", next_ids={"recording": 30})
    if counted:
        total = seen
        Path(counted).write_text(str(total))


def run(children: multiprocessing.context.ForkServerContext, *arguments: object) -> int | None:
    child = children.Process(target=publish_and_die, args=arguments)
    child.start()
    child.join(PATIENCE_SECONDS)
    return child.exitcode


@pytest.mark.slow
def test_a_killed_publish_leaves_the_catalog_readable_and_the_next_publish_clean(
    children: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    tables = make_tables(tmp_path / "tables", 20)
    assert run(children, tables, tmp_path / "count", None, str(tmp_path / "count.txt")) == 0
    operations = int((tmp_path / "count.txt").read_text())
    assert operations > 100

    root = tmp_path / "root"
    publish(tables, root, snapshot_id="first", next_ids={"recording": 21})
    # The last operations are the two renames: they are all tried, the others evenly.
    points = sorted({*range(1, operations, max(1, operations // POINTS)), *range(operations - 4, operations + 1)})
    switched = 0
    for point in points:
        assert run(children, tables, root, point, None) == -signal.SIGKILL
        with open_catalog(root) as catalog:
            verify(catalog.folder)
            assert catalog.read_track_body(1)
            assert catalog.search(artist="Velvet Foxes", title="Midnight Running").hits[0].id == 1
            if catalog.snapshot_id == "second":
                switched += 1
                break
            assert catalog.snapshot_id == "first"
    assert switched <= 1
    name = "third" if switched else "second"
    publish(tables, root, snapshot_id=name, next_ids={"recording": 30})
    assert {snapshot.id for snapshot in list_snapshots(root)} == {"first", "second", name}
    assert all(verify(snapshot.folder) for snapshot in list_snapshots(root))
    assert sorted(path.name for path in root.iterdir()) == [".publish.lock", "current", "snapshots"]
    assert not list((root / "snapshots").glob(".*"))
