"""Tests of the follower of `current`: live snapshot, holders, release of files, refusals. The snapshots are really published."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog

from catalog_api.live_catalog import LiveCatalog
from catalog_api.problems import ApiError, render_problem
from catalog_store.errors import IndexDamagedError
from catalog_store.publisher import rollback
from tests.catalog_store.editions import EDITIONS, copied, publish_editions
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from catalog_store.reader import Catalog


@pytest.fixture(scope="module")
def editions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a catalog root with three snapshots; tests copy it."""
    return publish_editions(tmp_path_factory.mktemp("editions"))


@pytest.fixture
def root(editions: Path, tmp_path: Path) -> Path:
    """Return a copy of the catalog with `first` live."""
    return copied(editions, tmp_path)


@pytest.fixture
def live(root: Path) -> Iterator[LiveCatalog]:
    live = LiveCatalog(root)
    live.look()
    yield live
    live.close()


def opened_files(below: Path) -> set[str]:
    """Return the files below a folder that this process has open or mapped, deleted ones included."""
    mapped = {
        line.split(maxsplit=5)[5] for line in Path("/proc/self/maps").read_text().splitlines() if line.count(" ") >= 5 and "/" in line
    }
    handles = set()
    for handle in Path("/proc/self/fd").iterdir():
        try:
            handles.add(str(handle.readlink()))
        except FileNotFoundError:
            continue
    return {name for name in mapped | handles if name.startswith(str(below))}


def damage(file: Path) -> None:
    """Change one byte near the end, size kept."""
    content = bytearray(file.read_bytes())
    content[-2] ^= 0xFF
    file.unlink()  # not in place: the copy may share its bytes with nobody, but a mapped file must never change
    file.write_bytes(content)


def search_a_track(catalog: Catalog) -> object:
    body = next(body for number in range(1, 1000) if (body := catalog.read_track_body(number)))
    track = json.loads(body)
    return catalog.search(artist=track["artists"][0]["name"], title=track["title"])


def test_catalog_is_unavailable_before_the_first_publish(tmp_path: Path) -> None:
    live = LiveCatalog(tmp_path)
    live.look()
    with pytest.raises(ApiError) as raised, live.hold():
        pass
    assert (raised.value.code, raised.value.detail) == ("catalog_unavailable", "No catalog is published yet.")
    assert live.refused is not None


def test_damaged_snapshot_is_not_called_unpublished(root: Path) -> None:
    damage(root / "snapshots" / "first" / "serving" / "serving.sqlite")
    live = LiveCatalog(root)
    live.look()
    with pytest.raises(ApiError, match="cannot be opened") as raised, live.hold():
        pass
    assert raised.value.code == "catalog_unavailable"


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("serving_base.sqlite", lambda catalog: catalog.find_artist(1)),
        ("search/title_word.bin", search_a_track),
    ],
)
def test_index_overwritten_while_it_is_served_is_unavailable_and_no_fault_of_the_server(
    root: Path, live: LiveCatalog, name: str, ask: Callable[[Catalog], object]
) -> None:
    with live.hold() as catalog:
        ask(catalog)
        with (root / "snapshots" / "first" / "serving" / name).open("r+b") as file:
            file.write(b"\xff" * os.fstat(file.fileno()).st_size)
        with pytest.raises(IndexDamagedError, match="roll back") as raised:
            ask(catalog)
    answer = render_problem({"path": "/v1"}, raised.value)
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert str(root).encode() not in answer.body


def test_catalog_published_later_is_served(root: Path, tmp_path: Path) -> None:
    late = tmp_path / "late"
    live = LiveCatalog(late)
    live.look()
    root.rename(late)
    live.look()
    with live.hold() as catalog:
        assert catalog.snapshot_id == "first"
    live.close()


def test_snapshot_is_held_through_a_switch_and_freed_by_its_last_holder(root: Path, live: LiveCatalog) -> None:
    first = root.resolve() / "snapshots" / "first"
    with live.hold() as held:
        body = held.read_track_body(1)
        with live.hold() as also:
            rollback(root, "second")
            live.look()
            with live.hold() as new:
                assert (new.snapshot_id, held.snapshot_id, also.snapshot_id) == ("second", "first", "first")
            assert held.read_track_body(1) == body
        assert opened_files(first), "a holder is left, yet the files are closed"
        assert held.search(artist="Sade", title="No Ordinary Love Song").hits is not None
    assert opened_files(first) == set()
    assert opened_files(root.resolve() / "snapshots" / "second")


def test_idle_snapshot_is_freed_by_the_switch(root: Path, live: LiveCatalog) -> None:
    with live.hold() as catalog:
        catalog.search(artist="Sade", title="No Ordinary Love Song")
        thread = threading.Thread(target=catalog.read_track_body, args=(1,))
        thread.start()
        thread.join()
    for name in ("second", "third", "first", "second"):
        rollback(root, name)
        live.look()
        others = [root.resolve() / "snapshots" / other for other in EDITIONS if other != name]
        assert [opened_files(folder) for folder in others] == [set(), set()]
    live.close()
    assert opened_files(root.resolve() / "snapshots") == set()


@pytest.mark.parametrize(
    "broken", ["serving/serving.sqlite", "serving/bodies/track.bin", "serving/search/pair_documents.npy", "manifest.json"]
)
def test_damaged_snapshot_is_refused_once_and_the_old_one_stays(root: Path, live: LiveCatalog, broken: str) -> None:
    damage(root / "snapshots" / "second" / broken)
    shutil.rmtree(root / "current", ignore_errors=True)
    (root / ".next").symlink_to("snapshots/second")
    (root / ".next").rename(root / "current")
    with structlog.testing.capture_logs() as logged:
        for _ in range(3):
            live.look()
    with live.hold() as catalog:
        assert catalog.snapshot_id == "first"
    [refusal] = logged
    assert refusal["log_level"] == "error"
    assert Path(broken).name in refusal["reason"]
    assert live.refused == refusal["reason"]
    rollback(root, "third")
    live.look()
    with live.hold() as catalog:
        assert catalog.snapshot_id == "third"
    assert live.refused is None


@pytest.mark.parametrize("broken", ["manifest.json", "serving/search/popularity.npy"])
def test_repaired_snapshot_becomes_live(root: Path, live: LiveCatalog, broken: str) -> None:
    file = root / "snapshots" / "second" / broken
    good, times = file.read_bytes(), file.stat()
    damage(file)
    (root / ".next").symlink_to("snapshots/second")
    (root / ".next").rename(root / "current")
    live.look()
    live.look()
    assert live.snapshot is not None
    assert live.snapshot[0] == "first"
    # As `rsync -ac` repairs it: a new file takes its place with the old size and time.
    file.with_name("new").write_bytes(good)
    os.utime(file.with_name("new"), ns=(times.st_atime_ns, times.st_mtime_ns))
    file.with_name("new").rename(file)
    live.look()
    assert live.snapshot[0] == "second"
    assert live.refused is None


def test_worker_started_beside_a_damaged_snapshot_serves_the_last_served_one(root: Path, tmp_path: Path) -> None:
    note = tmp_path / "last-served"
    workers = [LiveCatalog(root, last_served=note) for _ in range(3)]
    workers[0].look()
    damage(root / "snapshots" / "second" / "serving" / "serving.sqlite")
    (root / ".next").symlink_to("snapshots/second")
    (root / ".next").rename(root / "current")
    for restarted in (workers[1], workers[2]):
        restarted.look()
        restarted.look()
        with restarted.hold() as catalog:
            assert catalog.snapshot_id == "first"
        status = restarted.read_status()
        assert (status.served, status.current, status.is_refused) == ("first", "second", True)
        assert status.behind_seconds > 0
    rollback(root, "third")
    for worker in workers:
        worker.look()
        assert worker.snapshot is not None
        assert worker.snapshot[0] == "third"
        assert not worker.read_status().is_refused
        worker.close()
    assert note.resolve().name == "third"


def test_worker_opens_no_snapshot_served_last_that_is_damaged_or_gone(root: Path, tmp_path: Path) -> None:
    note = tmp_path / "last-served"
    before = LiveCatalog(root, last_served=note)
    before.look()
    before.close()
    damage(root / "snapshots" / "first" / "serving" / "serving.sqlite")
    damage(root / "snapshots" / "second" / "serving" / "serving.sqlite")
    (root / ".next").symlink_to("snapshots/second")
    (root / ".next").rename(root / "current")
    for remove in (lambda: None, lambda: shutil.rmtree(root / "snapshots" / "first")):
        remove()
        restarted = LiveCatalog(root, last_served=note)
        restarted.look()
        assert restarted.snapshot is None


def test_verification_can_be_limited_to_sizes(root: Path) -> None:
    damage(root / "snapshots" / "first" / "serving" / "search" / "popularity.npy")
    quick = LiveCatalog(root, verify_contents=False)
    quick.look()
    assert quick.snapshot is not None
    quick.close()


def test_follower_thread_switches_by_itself_and_ends_with_close(root: Path) -> None:
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    live = LiveCatalog(root)
    live.follow()
    until(lambda: live.snapshot is not None)
    rollback(root, "third")
    until(lambda: live.snapshot is not None and live.snapshot[0] == "third")
    live.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "follow-current"]
    assert os.getpriority(os.PRIO_PROCESS, 0) == niceness


class _UnwritableLog:
    """A log that raises at every line, as on a full disk."""

    def __getattr__(self, _level: str) -> Callable[..., None]:
        def say(*_words: object, **_figures: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        return say


def test_follower_survives_a_log_that_raises_and_serves_later_snapshots(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalog_store.live_snapshot.log", _UnwritableLog())
    live = LiveCatalog(root, look_seconds=0.02)
    live.follow()
    for name in ("second", "third", "first"):
        rollback(root, name)
        until(lambda name=name: live.snapshot is not None and live.snapshot[0] == name)
    assert live.read_status().is_following
    live.close()


def test_follower_survives_a_link_that_leads_to_itself(root: Path) -> None:
    live = LiveCatalog(root, look_seconds=0.02)
    live.follow()
    until(lambda: live.snapshot is not None)
    (root / "current").unlink()
    (root / "current").symlink_to("current")
    until(lambda: live.read_status().is_refused)
    assert live.read_status().served == "first"
    rollback(root, "third")
    until(lambda: live.snapshot is not None and live.snapshot[0] == "third")
    live.close()


def test_status_shows_how_long_another_snapshot_has_been_served(root: Path, live: LiveCatalog) -> None:
    status = live.read_status()
    assert (status.served, status.current, status.behind_seconds) == ("first", "first", 0)
    rollback(root, "second")
    begun = live.read_status()  # no follower runs, and the change is seen all the same
    assert (begun.served, begun.current, begun.is_following) == ("first", "second", False)
    rollback(root, "third")
    later = live.read_status()
    assert later.current == "third"
    assert later.behind_seconds > begun.behind_seconds
    live.look()
    assert live.read_status()[:3] == ("third", "third", 0)


@pytest.mark.parametrize("change", [Path.unlink, lambda link: (link.unlink(), link.symlink_to("snapshots/nowhere"))])
def test_status_shows_that_current_is_missing_or_dangles(root: Path, live: LiveCatalog, change: Callable[[Path], object]) -> None:
    change(root / "current")
    live.look()
    status = live.read_status()
    assert status.served == "first"
    assert status.current in {None, "nowhere"}
    assert status.is_refused
    rollback(root, "first")
    live.look()
    assert live.read_status()[:4] == ("first", "first", 0, False)


def test_status_of_a_damaged_snapshot_is_refused(root: Path, live: LiveCatalog) -> None:
    damage(root / "snapshots" / "second" / "serving" / "search" / "popularity.npy")
    (root / ".next").symlink_to("snapshots/second")
    (root / ".next").rename(root / "current")
    live.look()
    status = live.read_status()
    assert (status.served, status.current, status.is_refused) == ("first", "second", True)
