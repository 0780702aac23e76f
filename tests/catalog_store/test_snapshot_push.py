"""Tests of pushes to stores: what is sent, the switch, interruption, pruning, and pulls from there."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from catalog_store import remote_catalog
from catalog_store.errors import PublishBusyError, SnapshotInvalidError, TransferError, UnfitDestinationError
from catalog_store.file_lock import hold_lock
from catalog_store.publisher import publish, rollback
from catalog_store.snapshot import MANIFEST, read_manifest, verify
from catalog_store.snapshot_pull import pull
from catalog_store.snapshot_push import push
from tests.s3_server import serve_s3

if TYPE_CHECKING:
    from collections.abc import Iterator

STORE = "memory://catalogs/music"


@pytest.fixture
def source(builder: Path, tmp_path: Path) -> Path:
    """Return a copy of the builder's catalog that a test may change; `first` is live."""
    shutil.copytree(builder, tmp_path / "builder", symlinks=True)
    rollback(tmp_path / "builder", "first")
    return tmp_path / "builder"


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryFileSystem]:
    monkeypatch.setattr(remote_catalog, "FIRST_PAUSE_SECONDS", 0)
    yield MemoryFileSystem()
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def read_shown(store: MemoryFileSystem) -> bytes:
    content: bytes = store.cat_file(f"/catalogs/music/current/{MANIFEST}")
    return content


def test_a_pushed_snapshot_is_pulled_with_all_files(source: Path, tmp_path: Path) -> None:
    done = push(source, STORE, keep=3)
    total = sum(file.bytes for file in read_manifest(source / "current").list_files())
    assert (done.snapshot, done.previous, done.sent_bytes + done.reused_bytes) == ("first", None, total)
    assert pull(STORE, tmp_path / "node", role="all").snapshot == "first"
    assert (tmp_path / "node" / "current" / MANIFEST).read_bytes() == (source / "current" / MANIFEST).read_bytes()


@pytest.mark.parametrize("pushed", ["first", "second"])
def test_file_that_has_rotted_in_the_store_is_replaced_when_all_files_are_sent(
    source: Path, tmp_path: Path, store: MemoryFileSystem, pushed: str
) -> None:
    push(source, STORE, keep=3)
    rollback(source, pushed)
    kept = {file.sha256 for file in read_manifest(source / "current").list_files()}
    shared = (file for file in read_manifest(source / "snapshots" / "first").list_files() if file.sha256 in kept)
    place = f"/catalogs/music/snapshots/first/{max(shared, key=lambda file: file.bytes).path}"
    store.pipe_file(place, bytes(len(store.cat_file(place))))
    push(source, STORE, keep=3)
    with pytest.raises(TransferError):
        pull(STORE, tmp_path / "node", role="all")
    done = push(source, STORE, keep=3, sends_all=True)
    assert done.sent_bytes + done.reused_bytes == sum(file.bytes for file in read_manifest(source / "current").list_files())
    pull(STORE, tmp_path / "node", role="all")


def test_contents_that_the_store_has_are_copied_there_and_not_sent(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push(source, STORE, keep=3)
    rollback(source, "second")
    sent: list[str] = []
    put = MemoryFileSystem.put_file

    def note(self: MemoryFileSystem, local: str, remote: str, **options: Any) -> None:  # noqa: ANN401 - of fsspec
        sent.append(remote)
        put(self, local, remote, **options)

    monkeypatch.setattr(MemoryFileSystem, "put_file", note)
    done = push(source, STORE, keep=3)
    old = {file.sha256 for file in read_manifest(source / "snapshots" / "first").list_files()}
    files = list(read_manifest(source / "current").list_files())
    new = {file.sha256: file.bytes for file in files if file.sha256 not in old}
    assert (done.sent_files, done.sent_bytes) == (len(new), sum(new.values()))
    assert len(sent) == len(new) < len(files)
    assert done.sent_bytes + done.reused_bytes == sum(file.bytes for file in files)
    assert pull(STORE, tmp_path / "node", role="all").snapshot == "second"


def test_a_second_push_sends_nothing(source: Path) -> None:
    push(source, STORE, keep=3)
    again = push(source, STORE, keep=3)
    assert (again.previous, again.sent_files, again.sent_bytes) == ("first", 0, 0)


@pytest.mark.parametrize("failing", [0, 3])
def test_an_interrupted_push_shows_the_old_snapshot_and_goes_on(
    source: Path, tmp_path: Path, store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    push(source, STORE, keep=3)
    shown = read_shown(store)
    rollback(source, "second")
    sent: list[str] = []
    put = MemoryFileSystem.put_file

    def break_off(self: MemoryFileSystem, local: str, remote: str, **options: Any) -> None:  # noqa: ANN401
        if len(sent) == failing:
            raise PermissionError("quota")
        sent.append(remote)
        put(self, local, remote, **options)

    with monkeypatch.context() as broken:
        broken.setattr(MemoryFileSystem, "put_file", break_off)
        with pytest.raises(TransferError, match="quota"):
            push(source, STORE, keep=3)
    assert read_shown(store) == shown
    assert pull(STORE, tmp_path / "node").snapshot == "first"
    push(source, STORE, keep=3)
    assert pull(STORE, tmp_path / "node").snapshot == "second"


def test_a_push_of_the_files_of_servers_serves_them(source: Path, tmp_path: Path) -> None:
    done = push(source, STORE, role="serving", keep=3)
    assert done.sent_bytes <= sum(file.bytes for file in read_manifest(source / "current").serving)
    assert pull(STORE, tmp_path / "node").snapshot == "first"
    with pytest.raises(TransferError, match=r"has no .* another role \(--role\)"):
        pull(STORE, tmp_path / "analyst", role="analyst")


def test_a_node_pushes_the_files_of_its_role(source: Path, tmp_path: Path) -> None:
    pull(str(source), tmp_path / "node")
    with pytest.raises(SnapshotInvalidError, match=r"holds only the files of role serving: push .* with --role serving"):
        push(tmp_path / "node", STORE, keep=3)
    assert push(tmp_path / "node", STORE, role="serving", keep=3).snapshot == "first"


def test_a_damaged_file_is_not_pushed(source: Path, store: MemoryFileSystem) -> None:
    file = next(iter(read_manifest(source / "current").serving))
    path = (source / "current").resolve() / file.path
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(SnapshotInvalidError, match=r"is damaged, nothing was switched"):
        push(source, STORE, keep=3)
    assert not store.exists(f"/catalogs/music/current/{MANIFEST}")


def test_old_snapshots_in_the_store_are_pruned_but_never_the_shown_one(source: Path, store: MemoryFileSystem, tmp_path: Path) -> None:
    rollback(source, "second")
    push(source, STORE, keep=3)
    rollback(source, "first")
    # `first` is the older one, and shown.
    assert push(source, STORE, keep=1).pruned == ["second"]
    assert not store.exists("/catalogs/music/snapshots/second")
    assert pull(STORE, tmp_path / "node").snapshot == "first"


def test_snapshots_in_the_store_are_pruned_in_the_order_of_publishing(
    source: Path, store: MemoryFileSystem, tables: dict[str, Path]
) -> None:
    rollback(source, "second")
    push(source, STORE, keep=3)
    store.pipe_file("/catalogs/music/snapshots/zero/serving/serving.sqlite", b"left by a killed push")
    for name in ("before-all", "another"):  # the clock that ids come from may have been wrong
        publish(tables, source, snapshot_id=name, next_ids={})
        pruned = push(source, STORE, keep=2).pruned
        assert pruned == {"before-all": ["zero"], "another": ["second"]}[name]


def test_a_damaged_manifest_in_the_store_is_replaced(source: Path, store: MemoryFileSystem, tmp_path: Path) -> None:
    store.pipe_file(f"/catalogs/music/current/{MANIFEST}", b"{")
    assert push(source, STORE, keep=3).previous is None
    assert pull(STORE, tmp_path / "node").snapshot == "first"


def test_a_folder_is_a_store(source: Path, tmp_path: Path) -> None:
    push(source, str(tmp_path / "mount"), keep=3)
    assert pull(str(tmp_path / "mount"), tmp_path / "node").snapshot == "first"


@pytest.mark.parametrize("name", ["a::b", "~b", "file:b", "star*b"])
def test_folder_of_any_name_is_a_store_and_a_source(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    push(source, name, keep=3)
    assert (tmp_path / name / "current" / MANIFEST).is_file()
    assert pull(name, tmp_path / "node").snapshot == "first"


def test_a_catalog_is_no_store(source: Path, tmp_path: Path) -> None:
    pull(str(source), tmp_path / "node", role="all")
    rollback(source, "second")
    for target in (tmp_path / "node", source):
        with pytest.raises(UnfitDestinationError, match="push to another folder"):
            push(source, str(target), keep=1)
    verify(tmp_path / "node" / "snapshots" / "first")


def test_a_folder_shows_the_old_manifest_until_the_new_one_is_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "mount"
    push(source, str(store), keep=3)
    shown = (store / "current" / MANIFEST).read_bytes()
    rollback(source, "second")

    def fill_disk(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().is_relative_to(store / "current"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fill_disk)
        with pytest.raises(OSError, match="No space left"):
            push(source, str(store), keep=3)
    assert (store / "current" / MANIFEST).read_bytes() == shown
    assert not list(store.rglob("*.pending"))
    push(source, str(store), keep=3)
    assert pull(str(store), tmp_path / "node").snapshot == "second"


def test_http_is_refused_as_it_cannot_be_written(source: Path) -> None:
    with pytest.raises(TransferError, match="HTTP servers are only read"):
        push(source, "https://builder.example/catalog", keep=3)


def test_second_push_at_once_is_refused(source: Path) -> None:
    with hold_lock(source / ".push.lock", AssertionError()), pytest.raises(PublishBusyError, match="another process pushes"):
        push(source, STORE, keep=3)


# Three CPU seconds for the S3 server alone.
@pytest.mark.slow
def test_push_to_s3_is_pulled_from_there(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_s3(monkeypatch) as client:
        client.create_bucket(Bucket="catalogs")
        push(source, "s3://catalogs/music", keep=1)
        done = pull("s3://catalogs/music", tmp_path / "node")
        assert done.fetched_bytes + done.reused_bytes == sum(file.bytes for file in read_manifest(source / "current").serving)
        rollback(source, "second")
        night = push(source, "s3://catalogs/music", keep=1)
        assert night.reused_bytes
        assert night.pruned == ["first"]
        assert pull("s3://catalogs/music", tmp_path / "node").snapshot == "second"
        client.put_object(Bucket="catalogs", Key="music/current/manifest.json", Body=b"{")
        with pytest.raises(SnapshotInvalidError):
            pull("s3://catalogs/music", tmp_path / "node")


@pytest.mark.slow
def test_push_to_a_bucket_that_is_not_there_makes_none(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_s3(monkeypatch) as client:
        with pytest.raises(TransferError, match=r"snapshots/first/.* to s3://catalog/music: The specified bucket does not exist"):
            push(source, "s3://catalog/music", keep=1)
        assert "catalog" not in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]


@pytest.mark.parametrize("address", ["s3://", "s3:///music"])
def test_address_without_a_bucket_is_refused(source: Path, tmp_path: Path, address: str) -> None:
    for act in (lambda: push(source, address, keep=1), lambda: pull(address, tmp_path / "node")):
        with pytest.raises(TransferError, match="names no bucket: give s3://BUCKET/FOLDER"):
            act()
