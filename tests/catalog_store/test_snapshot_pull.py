"""Tests of pulls of a serving node from folders and an HTTP server: fetch, reuse, refusal, resumption, pruning."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec
import pytest

from catalog_store import remote_catalog, snapshot, snapshot_pull
from catalog_store.errors import PublishBusyError, SnapshotInvalidError, TransferError, UnfitDestinationError
from catalog_store.published_snapshots import list_snapshots
from catalog_store.publisher import rollback
from catalog_store.reader import open_catalog
from catalog_store.snapshot import MANIFEST, Manifest, read_manifest, verify
from catalog_store.snapshot_pull import pull
from catalog_store.verified_files import verify_once
from tests.pipeline.dumps.landing.http_upstream import Upstream, serving
from tests.rotten_files import rot

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_catalog, "FIRST_PAUSE_SECONDS", 0)


@pytest.fixture
def source(builder: Path, tmp_path: Path) -> Path:
    """Return a copy of the builder's catalog that a test may change; `second` is live."""
    shutil.copytree(builder, tmp_path / "builder", symlinks=True)
    return tmp_path / "builder"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return tmp_path / "node"


@pytest.fixture
def upstream(builder: Path) -> Iterator[Upstream]:
    """Yield the builder's catalog behind a web server that lists nothing and follows `current`."""
    files = {str(path.relative_to(builder)): path.read_bytes() for path in (builder / "snapshots").rglob("*") if path.is_file()}
    files[f"current/{MANIFEST}"] = files[f"snapshots/second/{MANIFEST}"]
    with serving(Upstream(files=files)) as served:
        yield served


def find_file(folder: Path, path: str) -> snapshot.StoredFile | snapshot.TablePart:
    return next(file for file in read_manifest(folder).list_files() if file.path == path)


def list_files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def require_serves(node: Path, name: str) -> None:
    """Require that `node` serves a whole snapshot and holds no remains of a pull."""
    with open_catalog(node) as catalog:
        assert catalog.snapshot_id == name
        assert catalog.read_track_body(1)
        verify(catalog.folder, role="serving")
    assert [path.name for path in (node / "snapshots").iterdir() if path.name.startswith(".")] == []


def seal(folder: Path, manifest: Manifest) -> None:
    (folder / MANIFEST).write_bytes(manifest.add_seal().encode())


def test_pull_brings_the_live_snapshot_with_the_files_of_a_server_alone(source: Path, node: Path) -> None:
    done = pull(str(source), node)
    manifest = read_manifest(source / "current")
    # Files of equal contents, such as empty lists, are fetched once.
    different = {file.sha256: file.bytes for file in manifest.serving}
    assert (done.snapshot, done.previous, done.fetched_bytes) == ("second", None, sum(different.values()))
    assert done.fetched_bytes + done.reused_bytes == sum(file.bytes for file in manifest.serving)
    assert list_files(node / "snapshots" / "second") == sorted([MANIFEST, *(file.path for file in manifest.serving)])
    assert (node / "snapshots" / "second" / MANIFEST).read_bytes() == (source / "current" / MANIFEST).read_bytes()
    assert (node / "current").readlink() == Path("snapshots/second")
    require_serves(node, "second")


@pytest.mark.parametrize("role", ["analyst", "all"])
def test_other_roles_bring_their_files(source: Path, node: Path, role: snapshot.Role) -> None:
    pull(str(source), node, role=role)
    manifest = read_manifest(source / "current")
    assert list_files(node / "snapshots" / "second") == sorted([MANIFEST, *(file.path for file in manifest.list_files(role))])
    verify(node / "snapshots" / "second", role=role)


def test_second_pull_moves_nothing_and_reads_no_contents(source: Path, node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pull(str(source), node)
    monkeypatch.setattr(snapshot_pull, "hash_file", pytest.fail)
    monkeypatch.setattr(remote_catalog, "hash_file", pytest.fail)
    again = pull(str(source), node)
    assert (again.fetched_files, again.fetched_bytes, again.reused_bytes) == (0, 0, first.fetched_bytes + first.reused_bytes)
    assert again.previous == "second"


def test_files_of_kept_snapshots_are_linked_and_not_fetched(source: Path, node: Path) -> None:
    rollback(source, "first")
    pull(str(source), node)
    rollback(source, "second")
    first, second = (node / "snapshots" / name for name in ("first", "second"))
    old = {file.sha256 for file in read_manifest(first).serving}
    equal = [file for file in read_manifest(source / "current").serving if file.sha256 in old]
    done = pull(str(source), node)
    new = {file.sha256: file.bytes for file in read_manifest(second).serving if file.sha256 not in old}
    assert equal
    assert (done.fetched_files, done.fetched_bytes) == (len(new), sum(new.values()))
    assert all((second / file.path).stat().st_nlink > 1 for file in equal)
    require_serves(node, "second")


def test_rollback_of_the_builder_is_followed_without_a_transfer(source: Path, node: Path) -> None:
    for name in ("first", "second", "first"):
        rollback(source, name)
        done = pull(str(source), node)
    assert (done.snapshot, done.previous, done.fetched_bytes) == ("first", "second", 0)
    require_serves(node, "first")


def test_workers_trust_files_that_the_pull_has_verified(source: Path, node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pull(str(source), node)
    # The manifest's own checksum finds the mark; no other file is read.
    monkeypatch.setattr(snapshot, "hash_file", pytest.fail)
    assert verify_once(node / "snapshots" / "second", contents=True).id == "second"


def test_damaged_copy_of_a_kept_snapshot_is_fetched_and_not_linked(source: Path, node: Path) -> None:
    rollback(source, "first")
    pull(str(source), node)
    old = read_manifest(node / "snapshots" / "first")
    rollback(source, "second")
    equal = {file.sha256: file for file in read_manifest(source / "current").serving}
    shared = next(file for file in old.serving if file.sha256 in equal and file.bytes)
    damaged = node / "snapshots" / "first" / shared.path
    damaged.write_bytes(bytes(shared.bytes))
    pull(str(source), node)
    require_serves(node, "second")


def test_damage_that_kept_size_and_time_is_found_and_repaired_by_a_full_read(source: Path, node: Path) -> None:
    pull(str(source), node)
    damaged = next(file.path for file in read_manifest(node / "current").serving if file.bytes)
    rot(node / "current" / damaged)
    assert pull(str(source), node).fetched_files == 0
    done = pull(str(source), node, reads_all=True)
    assert done.fetched_files == 1
    require_serves(node, "second")


def test_full_read_finds_damage_in_files_that_an_interrupted_pull_has_linked(source: Path, node: Path) -> None:
    rollback(source, "first")
    pull(str(source), node)
    rollback(source, "second")
    old = {file.sha256 for file in read_manifest(node / "current").serving}
    files = sorted(read_manifest(source / "current").serving, key=lambda file: file.bytes)
    shared = next(file for file in reversed(files) if file.sha256 in old)
    rot(node / "current" / next(file.path for file in read_manifest(node / "current").serving if file.sha256 == shared.sha256))
    new = next(source / "current" / file.path for file in reversed(files) if file.sha256 not in old)
    new.rename(source / "aside")
    with pytest.raises(TransferError, match="Pull again"):
        pull(str(source), node)
    (source / "aside").rename(new)
    pull(str(source), node, reads_all=True)
    require_serves(node, "second")


def test_lost_files_and_a_damaged_manifest_are_repaired(source: Path, node: Path) -> None:
    pull(str(source), node)
    folder = node / "snapshots" / "second"
    (folder / "serving" / "serving.sqlite").unlink()
    rot(folder / MANIFEST)
    assert pull(str(source), node).fetched_files == 1
    require_serves(node, "second")


def test_interrupted_pull_goes_on_where_it_stopped(upstream: Upstream, node: Path) -> None:
    def break_files(line: str) -> None:
        if line.startswith("pulling snapshot"):
            upstream.breaks, upstream.give = remote_catalog.ATTEMPTS, 1

    with pytest.raises(TransferError):
        pull(upstream.address, node, report=break_files)
    assert not (node / "current").is_symlink()
    broken = upstream.sent[-1][0]
    whole = {path for path, _, _ in upstream.sent} - {broken, f"current/{MANIFEST}"}
    upstream.sent.clear()
    pull(upstream.address, node)
    assert upstream.fetches(broken) == [(f"bytes={remote_catalog.ATTEMPTS}-", 206)]
    assert not whole & {path for path, _, _ in upstream.sent}
    require_serves(node, "second")


def test_interrupted_pull_is_used_for_the_snapshot_that_is_live_by_then(source: Path, upstream: Upstream, node: Path) -> None:
    rollback(source, "first")
    lacking = [path for path in upstream.files if path.endswith("/serving.sqlite")]
    database = {path: upstream.files.pop(path) for path in lacking}
    with pytest.raises(TransferError):
        pull(upstream.address, node)
    upstream.files |= database | {f"current/{MANIFEST}": upstream.files[f"snapshots/first/{MANIFEST}"]}
    kept = {file.sha256 for file in read_manifest(source / "snapshots" / "second").serving}
    new = {file.sha256 for file in read_manifest(source / "current").serving} - kept
    assert pull(upstream.address, node).fetched_files == len(new)
    require_serves(node, "first")


def read_manifest_of(upstream: Upstream) -> Manifest:
    return snapshot.decode_manifest(upstream.files[f"current/{MANIFEST}"], "test")


def test_part_of_another_file_is_fetched_from_the_beginning(source: Path, node: Path) -> None:
    file = max(read_manifest(source / "current").serving, key=lambda file: file.bytes)
    pulling = node / "snapshots" / snapshot_pull.PULLING_FOLDER
    pulling.mkdir(parents=True)
    (pulling / f"{file.sha256}.part").write_bytes(b"x" * (file.bytes // 2))
    pull(str(source), node)
    require_serves(node, "second")


@pytest.mark.parametrize("damage", ["cut", "changed", "longer"])
@pytest.mark.parametrize("is_remote", [False, True])
def test_wrong_file_is_refused_with_both_hashes_and_changes_nothing(
    source: Path, upstream: Upstream, node: Path, damage: str, *, is_remote: bool
) -> None:
    rollback(source, "first")
    pull(str(source), node)
    rollback(source, "second")
    # The last file: all others were fetched before it.
    file = find_file(source / "current", "serving/serving_base.sqlite")
    path = source / "current" / file.path
    good = path.read_bytes()
    bad = {"cut": good[:-1], "changed": good[:-1] + bytes([good[-1] ^ 1]), "longer": good + b"x"}[damage]
    path.write_bytes(bad)
    upstream.files[f"snapshots/second/{file.path}"] = bad
    with pytest.raises(TransferError) as refused:
        pull(upstream.address if is_remote else str(source), node)
    for part in (file.path, f"expected {len(good):,} bytes", file.sha256, f"found {len(bad):,} bytes", hashlib.sha256(bad).hexdigest()):
        assert part in str(refused.value)
    with open_catalog(node) as catalog:
        assert catalog.snapshot_id == "first"
    assert not (node / "snapshots" / "second").exists()
    path.write_bytes(good)
    assert pull(str(source), node).fetched_files == 1, "the whole files of the failed pull are kept"
    require_serves(node, "second")


@pytest.mark.parametrize(
    ("manners", "message"),
    [
        ({"broken_folders": {"current/manifest.json"}}, "503"),
        ({"moved": {f"current/{MANIFEST}": f"/current/{MANIFEST}"}}, "redirects 10 times"),
        ({"files": {}}, r"has no current/manifest\.json"),
        ({"files": {"current/manifest.json": b"{"}}, "not a manifest"),
    ],
)
def test_source_without_a_usable_manifest_is_refused(upstream: Upstream, node: Path, manners: dict[str, object], message: str) -> None:
    for name, value in manners.items():
        setattr(upstream, name, value)
    with pytest.raises((TransferError, SnapshotInvalidError), match=message):
        pull(upstream.address, node)
    assert not (node / "current").is_symlink()


def test_server_that_answers_again_is_asked_again(upstream: Upstream, node: Path) -> None:
    upstream.breaks, upstream.give = 3, 500
    said: list[str] = []
    pull(upstream.address, node, report=said.append)
    assert sum("trying again" in line for line in said) == 3
    require_serves(node, "second")


def test_file_that_the_source_pruned_meanwhile_is_named(upstream: Upstream, node: Path) -> None:
    del upstream.files["snapshots/second/serving/serving.sqlite"]
    with pytest.raises(TransferError, match=r"has no serving/serving\.sqlite of snapshot second: was it pruned"):
        pull(upstream.address, node)


@pytest.mark.parametrize(
    "path", ["../../evil", "/etc/evil", "serving/../../../evil", "serving//evil", ".hidden", "manifest.json", "a?b", ""]
)
def test_manifest_that_leads_out_of_the_folder_is_refused(source: Path, node: Path, path: str) -> None:
    folder = source / "snapshots" / "second"
    manifest = read_manifest(folder)
    evil = snapshot.StoredFile(path, 1, hashlib.sha256(b"x").hexdigest())
    seal(folder, msgspec.structs.replace(manifest, serving=(*manifest.serving, evil)))
    with pytest.raises(TransferError, match="is not a file of a snapshot"):
        pull(str(source), node)
    assert not (node / "current").is_symlink()


@pytest.mark.parametrize("changes", [{"sha": "../" + "0" * 61}, {"sha": "0" * 63}, {"bytes": -1}, {"id": ".second"}, {"id": "a/b"}])
def test_manifest_with_a_strange_hash_size_or_id_is_refused(source: Path, node: Path, changes: dict[str, object]) -> None:
    folder = source / "snapshots" / "second"
    manifest = read_manifest(folder)
    file = snapshot.StoredFile("serving/x", int(changes.get("bytes", 1)), str(changes.get("sha", "0" * 64)))  # type: ignore[call-overload]
    seal(folder, msgspec.structs.replace(manifest, serving=(file,), id=changes.get("id", "second")))
    with pytest.raises(TransferError, match=r"is not (a file|the id) of a snapshot"):
        pull(str(source), node)


def test_snapshot_that_this_program_cannot_open_never_goes_live(source: Path, node: Path) -> None:
    rollback(source, "first")
    pull(str(source), node)
    rollback(source, "second")
    folder = source / "snapshots" / "second"
    path = folder / "serving" / "search" / "format.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": 999}))
    manifest = read_manifest(folder)
    changed = tuple(snapshot.describe_file(folder, folder / file.path) for file in manifest.serving)
    seal(folder, msgspec.structs.replace(manifest, serving=changed))
    with pytest.raises(SnapshotInvalidError, match="search format 999"):
        pull(str(source), node)
    assert (node / "current").readlink() == Path("snapshots/first")
    assert not (node / "snapshots" / "second").exists()


def test_other_snapshot_of_the_same_id_is_not_overwritten(source: Path, node: Path) -> None:
    pull(str(source), node)
    folder = source / "snapshots" / "second"
    seal(folder, msgspec.structs.replace(read_manifest(folder), created_at="2026-01-01T00:00:00Z"))
    with pytest.raises(UnfitDestinationError, match="differs from the source's snapshot of that id"):
        pull(str(source), node)


def test_builder_is_refused_as_destination_of_a_servers_files(source: Path, builder: Path) -> None:
    with pytest.raises(UnfitDestinationError, match="holds the files of role all"):
        pull(str(builder), source)
    with pytest.raises(UnfitDestinationError, match="name two folders"):
        pull(str(source), source)


def test_second_pull_at_once_is_refused(source: Path, node: Path) -> None:
    pull(str(source), node)
    with (node / ".pull.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(PublishBusyError, match="another process pulls into"):
            pull(str(source), node)


def test_old_snapshots_are_pruned_but_never_the_live_one(source: Path, node: Path) -> None:
    for name in ("first", "second"):
        rollback(source, name)
        done = pull(str(source), node, keep=1)
    assert done.pruned == ["first"]
    rollback(source, "first")
    assert pull(str(source), node, keep=1).pruned == [], "the newest stays, as everywhere"
    assert {found.id for found in list_snapshots(node)} == {"first", "second"}
    require_serves(node, "first")


def test_full_disk_is_refused_before_anything_is_fetched(source: Path, node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=10))
    with pytest.raises(TransferError, match=r"needs [\d,]+ bytes more, 10 are free"):
        pull(str(source), node)
    monkeypatch.undo()
    pull(str(source), node)
    require_serves(node, "second")


def test_disk_that_is_full_during_a_pull_is_named(source: Path, node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_disk(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")  # without a name, as a failed write has none

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fill_disk)
        with pytest.raises(OSError, match=f"No space left on device: '{node}'"):
            pull(str(source), node)
    pull(str(source), node)
    require_serves(node, "second")


@pytest.mark.parametrize("address", ["https://user:secret@builder/catalog", "https://builder/catalog?token=secret"])
def test_credentials_in_an_address_are_refused_and_not_repeated(node: Path, address: str) -> None:
    with pytest.raises(TransferError) as refused:
        pull(address, node)
    assert "secret" not in str(refused.value)
    assert "put credentials into the environment" in str(refused.value)


def test_unknown_kind_of_source_is_refused(node: Path) -> None:
    with pytest.raises(TransferError, match="no such kind of source"):
        pull("gopher://builder/catalog", node)
