"""Tests that `current` leads to a whole snapshot after the next operation, whatever was killed, failed or created by hand."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from catalog_store import current_link, publisher
from catalog_store.errors import CatalogError, NoSnapshotError, SnapshotExistsError, SnapshotInvalidError
from catalog_store.published_snapshots import list_snapshots
from catalog_store.publisher import REQUIRED_TABLES, prune, publish, rollback
from catalog_store.reader import open_catalog
from catalog_store.snapshot import FORMAT, FORMAT_VERSION, MANIFEST, Manifest, StoredTable, describe_file, read_manifest, verify
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_tables(tmp_path_factory.mktemp("small"), 20)


@pytest.fixture(scope="module")
def three(small: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a catalog with snapshots a, b and c; c is live."""
    root = tmp_path_factory.mktemp("three")
    for number, name in enumerate("abc", start=1):
        publish(small, root, snapshot_id=name, next_ids={"recording": 20 + number})
    return root


@pytest.fixture
def root(three: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(three, tmp_path / "catalog", symlinks=True))


def name_of_live(root: Path) -> str:
    """`current` leads to a snapshot that is whole and opens."""
    verify((root / "current").resolve())
    with open_catalog(root) as catalog:
        return catalog.snapshot_id


def folders(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "snapshots").iterdir())


def leave_as_killed_between_the_renames(root: Path, name: str, live: str | None) -> None:
    """Leave the state of a publish of `name` that died when it had its name and was not live yet."""
    (root / "current").unlink()
    if live:
        (root / "current").symlink_to(f"snapshots/{live}")
    (root / f".publishing-{name}").symlink_to(f"snapshots/{name}")


def publish_next(small: dict[str, Path], root: Path) -> str:
    return publish(small, root, snapshot_id="next", next_ids={}).id


def lose_tables(root: Path, *names: str) -> None:
    """Leave the snapshots as a server has them: without tables, the analysts' file and attachments."""
    for name in names:
        folder = root / "snapshots" / name
        shutil.rmtree(folder / "tables")
        for file in ("catalog.duckdb", *(attached.path for attached in read_manifest(folder).attachments)):
            (folder / file).unlink()


@pytest.mark.parametrize("contents", [True, False])
def test_rollback_refuses_a_snapshot_that_lost_all_tables_where_others_have_them(root: Path, *, contents: bool) -> None:
    lose_tables(root, "a")
    before = name_of_live(root)
    with pytest.raises(SnapshotInvalidError, match=r"snapshot a at .* holds those of 'serving'.*--role serving"):
        rollback(root, "a", contents=contents)
    assert name_of_live(root) == before
    assert rollback(root, "a", role="serving").id == "a"


def test_rollback_accepts_a_server_snapshot_where_all_are_such(root: Path) -> None:
    lose_tables(root, "a", "b", "c")
    assert rollback(root, "a").id == "a"
    with pytest.raises(SnapshotInvalidError, match="role 'all'"):
        rollback(root, "b", role="all")
    assert (root / "current").resolve().name == "a"


@pytest.mark.parametrize("contents", [True, False])
def test_rollback_to_a_snapshot_that_never_was_live_survives_the_next_prune(root: Path, *, contents: bool) -> None:
    leave_as_killed_between_the_renames(root, "c", "b")
    rollback(root, "c", contents=contents)
    assert not list(root.glob(".publishing-*"))
    prune(root, 1)
    assert name_of_live(root) == "c"


def test_rollback_to_a_snapshot_that_never_was_live_survives_the_next_publish(small: dict[str, Path], root: Path) -> None:
    leave_as_killed_between_the_renames(root, "c", None)
    rollback(root, "c")
    publish_next(small, root)
    assert {"a", "b", "c", "next"} <= set(folders(root))
    rollback(root, "c")
    assert name_of_live(root) == "c"


def test_a_snapshot_that_was_live_after_a_rollback_is_kept_when_another_one_is(root: Path) -> None:
    leave_as_killed_between_the_renames(root, "c", "a")
    rollback(root, "c")
    rollback(root, "b")
    prune(root, 3)
    assert folders(root) == ["a", "b", "c"]


def test_a_marker_beside_the_live_snapshot_goes_and_the_snapshot_stays(root: Path) -> None:
    (root / ".publishing-c").symlink_to("snapshots/c")
    prune(root, 3)
    assert name_of_live(root) == "c"
    assert not list(root.glob(".publishing-*"))


def test_two_markers_cost_only_the_snapshots_that_never_were_live(root: Path) -> None:
    leave_as_killed_between_the_renames(root, "b", "c")
    (root / ".publishing-c").symlink_to("snapshots/c")
    (root / ".publishing-gone").symlink_to("snapshots/gone")
    assert prune(root, 3) == []
    assert folders(root) == ["a", "c"]
    assert name_of_live(root) == "c"
    assert not list(root.glob(".publishing-*"))


@pytest.mark.parametrize("target", ["../elsewhere", "snapshots/a", "snapshots/../../elsewhere", "snapshots", ".", "/"])
def test_a_marker_made_by_hand_removes_nothing_but_itself(root: Path, target: str) -> None:
    elsewhere = root.parent / "elsewhere"
    shutil.copytree(root / "snapshots" / "a", elsewhere)
    (root / ".publishing-b").symlink_to(target)
    prune(root, 3)
    assert (elsewhere / MANIFEST).exists()
    assert folders(root) == ["a", "b", "c"]
    assert not (root / ".publishing-b").is_symlink()


def test_marker_other_than_a_link_has_no_effect(root: Path) -> None:
    (root / ".publishing-a").write_text("")
    (root / ".publishing-b").mkdir()
    (root / ".publishing-").symlink_to("snapshots/")
    prune(root, 3)
    assert folders(root) == ["a", "b", "c"]
    assert not list(root.glob(".publishing-*"))


@pytest.mark.parametrize("by", ["absolute", "chain", "dots", "alias"])
def test_live_snapshot_is_found_by_any_path_of_current(root: Path, by: str) -> None:
    (root / "current").unlink()
    (root / "latest").symlink_to("snapshots/a")
    (root / "snapshots" / "alias").symlink_to("a")
    target = {"absolute": root / "snapshots" / "a", "chain": "latest", "dots": "snapshots/../snapshots/a/", "alias": "snapshots/alias"}[by]
    (root / "current").symlink_to(target)
    (root / ".publishing-a").symlink_to("snapshots/a")
    prune(root, 1)
    assert name_of_live(root) == "a"
    assert "b" not in folders(root)


def test_snapshots_may_be_on_another_disk_under_another_name(small: dict[str, Path], root: Path) -> None:
    (root / "snapshots").rename(root.parent / "volume")
    (root / "snapshots").symlink_to(root.parent / "volume")
    (root / "current").unlink()
    (root / "current").symlink_to(root.parent / "volume" / "a")
    assert [snapshot.id for snapshot in list_snapshots(root) if snapshot.is_current] == ["a"]
    publish_next(small, root)
    rollback(root, "a")
    assert prune(root, 1) == ["b", "c"]
    assert name_of_live(root) == "a"


def test_link_below_snapshots_is_pruned_without_its_target(root: Path) -> None:
    shutil.move(root / "snapshots" / "a", root.parent / "moved")
    (root / "snapshots" / "a").symlink_to(root.parent / "moved")
    assert prune(root, 1) == ["a", "b"]
    assert verify(root.parent / "moved").id == "a"


def test_target_of_current_is_kept_under_a_dotted_name(root: Path) -> None:
    (root / "snapshots" / "a").rename(root / "snapshots" / ".removing-a")
    (root / "current").unlink()
    (root / "current").symlink_to("snapshots/.removing-a")
    prune(root, 1)
    assert name_of_live(root) == "a"


def test_dangling_current_stops_publish_and_prune_until_a_rollback(small: dict[str, Path], root: Path) -> None:
    shutil.rmtree(root / "snapshots" / "c")
    for act in (lambda: prune(root, 1), lambda: publish_next(small, root)):
        with pytest.raises(NoSnapshotError, match=r"current names snapshots/c, which is not there: .*rollback"):
            act()
    assert folders(root) == ["a", "b"]
    rollback(root, "b")
    assert name_of_live(root) == "b"
    assert publish_next(small, root) == name_of_live(root)


def test_a_current_that_is_a_folder_is_refused_before_anything_is_written(small: dict[str, Path], root: Path) -> None:
    (root / "current").unlink()
    shutil.copytree(root / "snapshots" / "c", root / "current")
    for act in (lambda: prune(root, 1), lambda: publish_next(small, root), lambda: rollback(root, "a")):
        with pytest.raises(NoSnapshotError, match="is not a link, so it cannot be switched: move it away"):
            act()
    assert folders(root) == ["a", "b", "c"]


def test_an_id_that_a_dangling_link_has_is_refused(small: dict[str, Path], root: Path) -> None:
    (root / "snapshots" / "next").symlink_to("nowhere")
    with pytest.raises(SnapshotExistsError):
        publish_next(small, root)
    assert name_of_live(root) == "c"


def fail_once(monkeypatch: pytest.MonkeyPatch, module: object, name: str, when: Callable[..., bool] = lambda *_: True) -> None:
    """Let the first call of `name` for which `when` holds raise OSError."""
    real = getattr(module, name)
    left = [1]

    def failing(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - stands for any function
        if left and when(*arguments):
            left.pop()
            raise OSError(28, "No space left on device")
        return real(*arguments, **named)

    monkeypatch.setattr(module, name, failing)


STEPS: tuple[tuple[object, str, Callable[..., bool]], ...] = (
    (publisher, "flush", lambda *_: True),
    (publisher, "make_link", lambda *_: True),
    (Path, "rename", lambda path, _target: path.name.startswith(".building-")),
    (publisher, "flush_folder", lambda folder: folder.name == "snapshots"),
    (Path, "rename", lambda _path, target: Path(target).name == "current"),
    (current_link, "flush_folder", lambda folder: folder.name == "catalog"),
)
"""Steps of a publish, from the last write until the live link is on disk."""


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_publish_that_fails_at_the_switch_leaves_nothing_and_the_old_catalog_live(
    small: dict[str, Path], root: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(publisher, "_build", build_next_to_nothing)
    monkeypatch.setattr(publisher, "require_invariants", lambda *_: None)  # next to nothing keeps none
    with monkeypatch.context() as patched:
        fail_once(patched, *STEPS[step])
        with pytest.raises(OSError, match="No space left"):
            publish_next(small, root)
    assert name_of_live(root) == "c"
    assert folders(root) == ["a", "b", "c"]
    assert sorted(path.name for path in root.iterdir()) == [".publish.lock", "current", "snapshots"]
    publish_next(small, root)
    assert verify((root / "current").resolve()).id == "next"


def test_a_publish_that_fails_while_it_writes_leaves_nothing(small: dict[str, Path], root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        fail_once(patched, publisher, "build_search")
        with pytest.raises(OSError, match="No space left"):
            publish_next(small, root)
    assert folders(root) == ["a", "b", "c"]
    publish_next(small, root)
    assert name_of_live(root) == "next"


def test_a_first_publish_that_fails_at_the_switch_leaves_no_current(
    small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "_build", build_next_to_nothing)
    monkeypatch.setattr(publisher, "require_invariants", lambda *_: None)  # next to nothing keeps none
    with monkeypatch.context() as patched:
        fail_once(patched, current_link, "flush_folder", lambda folder: folder == tmp_path)
        with pytest.raises(OSError, match="No space left"):
            publish_next(small, tmp_path)
    assert not (tmp_path / "current").is_symlink()
    assert folders(tmp_path) == []


def test_a_rollback_that_cannot_be_flushed_is_taken_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        fail_once(patched, current_link, "flush_folder")
        with pytest.raises(OSError, match="No space left"):
            rollback(root, "a")
    assert name_of_live(root) == "c"
    rollback(root, "a")
    assert name_of_live(root) == "a"


def test_leftovers_that_cannot_be_removed_are_reported_and_stop_no_publish(
    small: dict[str, Path], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "_build", build_next_to_nothing)
    monkeypatch.setattr(publisher, "require_invariants", lambda *_: None)  # next to nothing keeps none
    (root / "snapshots" / ".removing-x").mkdir()
    reported: list[str] = []
    with monkeypatch.context() as patched:
        fail_once(patched, shutil, "rmtree", lambda folder: folder.name == ".removing-x")
        publish(small, root, snapshot_id="next", next_ids={}, report=reported.append)
    assert any(line.startswith("warning: ") and ".removing-x" in line and "remove it by hand" in line for line in reported)
    assert (root / "current").readlink() == Path("snapshots/next")
    prune(root, 4)
    assert ".removing-x" not in folders(root)


def test_a_prune_that_was_killed_half_way_is_finished_by_the_next_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        fail_once(patched, shutil, "rmtree")
        with pytest.raises(OSError, match="No space left"):
            prune(root, 1)
    assert folders(root) == [".removing-a", "b", "c"]
    (root / "snapshots" / "a").mkdir()  # in the way of a second removal
    (root / "snapshots" / "a" / "tables").mkdir()
    prune(root, 1)
    assert folders(root) == ["a", "c"]


class Killed(BaseException):
    """As SIGKILL: nothing after it changes a file."""


_operations = SimpleNamespace(root=None, left=None)
_CHANGES = frozenset({"os.mkdir", "os.link", "os.symlink", "os.rename", "os.remove", "os.rmdir"})


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if _operations.root is None or event not in _CHANGES or _operations.root not in str(arguments):
        return
    if _operations.left == 0:  # and from then on: a dead process cleans nothing up
        raise Killed
    _operations.left -= 1


def build_next_to_nothing(_tables: object, folder: Path, identity: Any, *_others: object, **_more: object) -> Manifest:  # noqa: ANN401
    folder.mkdir()
    (folder / "catalog.duckdb").write_text(identity.snapshot_id)
    manifest = Manifest(
        FORMAT, FORMAT_VERSION, identity.snapshot_id, "2026-01-01T00:00:00Z", "0" * 16, {"recording": StoredTable(0, 0, ())},
        identity.next_ids, describe_file(folder, folder / "catalog.duckdb"), (), sequence=identity.sequence,
    ).add_seal()  # fmt: skip
    (folder / MANIFEST).write_bytes(manifest.encode())
    return manifest


class Publishing(RuleBasedStateMachine):
    """Publish, roll back and prune in any order, each killed at any change of a file, with markers made by hand between them."""

    def __init__(self) -> None:
        super().__init__()
        if not getattr(sys, "_counts_operations", False):
            sys.addaudithook(_count)
            sys._counts_operations = True  # type: ignore[attr-defined]
        self.root = Path(tempfile.mkdtemp())
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(publisher, "_build", build_next_to_nothing)
        self.patch.setattr(publisher, "read_builds", lambda _folder: [])
        self.published = 0
        self.was_live = False

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.root)

    def run(self, act: Callable[[], object], operations: int | None) -> None:
        _operations.root, _operations.left = str(self.root), operations if operations is not None else -1
        try:
            with suppress(Killed, CatalogError):
                act()
        finally:
            _operations.root = None

    @rule(operations=st.none() | st.integers(0, 8), again=st.booleans())
    def publish(self, operations: int | None, *, again: bool) -> None:
        self.published += 0 if again else 1
        tables = dict.fromkeys(REQUIRED_TABLES, Path())
        self.run(lambda: publish(tables, self.root, snapshot_id=f"s{self.published}", next_ids={"recording": 10}), operations)

    @rule(number=st.integers(0, 9), operations=st.none() | st.integers(0, 5))
    def rollback(self, number: int, operations: int | None) -> None:
        self.run(lambda: rollback(self.root, f"s{number}"), operations)

    @precondition(lambda self: self.published)
    @rule(keep=st.integers(1, 3), operations=st.none() | st.integers(0, 6))
    def prune(self, keep: int, operations: int | None) -> None:
        self.run(lambda: prune(self.root, keep), operations)

    @precondition(lambda self: self.was_live)
    @rule(number=st.integers(0, 9), leads=st.sampled_from(["snapshots/s{}", "../s{}", "snapshots/nowhere"]))
    def make_a_marker(self, number: int, leads: str) -> None:
        with suppress(FileExistsError):
            (self.root / f".publishing-s{number}").symlink_to(leads.format(number))

    @invariant()
    def current_names_a_whole_snapshot(self) -> None:
        current = self.root / "current"
        if current.is_symlink():
            self.was_live = True
            assert verify(current.resolve()).id == current.readlink().name
        else:
            assert not self.was_live, "there was a live snapshot, and there is none"


TestPublishing = Publishing.TestCase
TestPublishing.settings = settings(
    max_examples=40, stateful_step_count=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def test_killed_publish_test_counts_operations(tmp_path: Path) -> None:
    machine = Publishing()
    try:
        machine.publish(4, again=False)
        assert not (machine.root / "current").is_symlink()
        assert folders(machine.root)
    finally:
        machine.teardown()
    assert tmp_path.exists()
