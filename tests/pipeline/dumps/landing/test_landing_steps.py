"""Each step of landing by itself: attempts and pauses, room, what a killed run left, notes, and what is named in a message."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing import landing_zone
from pipeline.dumps.landing.landed_dumps import (
    DamagedDumpError,
    describe_broken,
    find_last_good,
    forgive_broken,
    is_broken,
    list_broken_since,
    list_landed_dumps,
    mark_broken,
    prune_landings,
    remove_leftovers,
    require_whole,
)
from pipeline.dumps.landing.landing_zone import Landing, describe_landing, land
from pipeline.dumps.landing.sources import Source
from pipeline.dumps.landing.transfer import link_file
from pipeline.dumps.landing.upstream import RemoteFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


SOURCE = Source("store_a", "/up")


def lay_dump(zone: Path, name: str, **files: str) -> Path:
    """Put a landed dump into the zone."""
    folder = zone / name
    folder.mkdir(parents=True)
    records = []
    for file, text in sorted(files.items()):
        (folder / file).write_text(text)
        records.append({"name": file, "bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()})
    note = {"platform": "store_a", "location": "/up", "date": name[:10], "listing": f"listing of {name}", "files": records}
    (zone / f"{name}.landed.json").write_text(json.dumps(note))
    return folder


def names(folders: list[Path]) -> list[str]:
    return [folder.name for folder in folders]


# --- landed dumps and their notes ---


def test_dumps_of_one_date_are_ordered_by_number(tmp_path: Path) -> None:
    for name in ("2026-09-01.10", "2026-09-01", "2026-09-01.2", "2026-08-31.11", "2026-09-01.9"):
        lay_dump(tmp_path, name)
    (tmp_path / "2026-10-01").mkdir()  # without a note it has not landed
    (tmp_path / "2026-11-01").write_text("")
    (tmp_path / "2026-11-01.landed.json").write_text("{}")
    assert names(list_landed_dumps(tmp_path)) == ["2026-08-31.11", "2026-09-01", "2026-09-01.2", "2026-09-01.9", "2026-09-01.10"]


def test_last_good_dump_is_the_newest_that_is_not_broken(tmp_path: Path) -> None:
    assert find_last_good(tmp_path) is None
    one, two, three = (lay_dump(tmp_path, f"2026-09-0{day}") for day in (1, 2, 3))
    for newest, before in ((three, two), (two, one), (one, None)):
        assert find_last_good(tmp_path) == newest
        mark_broken(newest, "bad")
        assert is_broken(newest)
        assert find_last_good(tmp_path) == before


def test_broken_dumps_since_the_last_good_one_are_reported_with_time_and_reason(tmp_path: Path) -> None:
    one, two, three = (lay_dump(tmp_path, f"2026-09-0{day}") for day in (1, 2, 3))
    mark_broken(one, "no table", "code 1")
    mark_broken(three, "too few rows", "code 1", is_damaged=True, limits={"least": 2.0})
    note = json.loads((tmp_path / "2026-09-03.broken.json").read_text())
    found_at = note.pop("found_at")
    assert note == {"reason": "too few rows", "code": "code 1", "damaged": True, "limits": {"least": 2.0}}
    assert json.loads((tmp_path / "2026-09-01.broken.json").read_text())["damaged"] is False
    assert describe_broken(three) == f"dump 2026-09-03 (found broken {found_at}): too few rows"
    assert [line.partition(" (")[0] for line in list_broken_since(tmp_path, None)] == ["dump 2026-09-01", "dump 2026-09-03"]
    assert list_broken_since(tmp_path, one) == list_broken_since(tmp_path, two) == [describe_broken(three)]
    assert list_broken_since(tmp_path, three) == []
    (tmp_path / "2026-09-03.broken.json").write_text("[1]")
    assert describe_broken(three) == "dump 2026-09-03 (found broken before): for a reason that was lost"


@pytest.mark.parametrize(
    ("note", "code", "limits", "is_kept"),
    [
        ({"code": "1"}, "1", None, True),
        ({"code": "1", "limits": None}, "1", {"least": 1.0}, True),
        ({"code": "1", "limits": {"least": 1.0}}, "1", {"least": 1.0}, True),
        ({"code": "1", "limits": {"least": 1.0}}, "1", None, False),
        ({"code": "1", "limits": {"least": 1.0}}, "2", {"least": 1.0}, False),
        ({"code": "1", "limits": {}}, "1", {}, True),
        ({"code": "1", "limits": {}}, "1", None, False),
        ({}, "1", None, False),
    ],
)
def test_verdict_holds_for_the_same_code_and_limits(
    tmp_path: Path,
    note: dict[str, Any],
    code: str,
    limits: dict[str, float] | None,
    is_kept: bool,  # noqa: FBT001
) -> None:
    folder = lay_dump(tmp_path, "2026-09-01")
    (tmp_path / "2026-09-01.broken.json").write_text(json.dumps(note))
    forgive_broken(tmp_path, code, limits)
    assert is_broken(folder) is is_kept


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"files": null}', '{"files": {}}', "{"])
def test_landed_note_without_a_list_of_files_is_damaged(tmp_path: Path, note: str) -> None:
    folder = lay_dump(tmp_path, "2026-09-01", a="x")
    require_whole(folder)
    (tmp_path / "2026-09-01.landed.json").write_text(note)
    with pytest.raises(DamagedDumpError, match="cannot be read; the dump will be fetched again"):
        require_whole(folder)


def test_every_file_of_a_landed_dump_is_looked_at(tmp_path: Path) -> None:
    folder = lay_dump(tmp_path, "2026-09-01", a="1234", b="5678")
    (folder / "b").write_text("567x")
    with pytest.raises(DamagedDumpError, match="b: has changed since it landed"):
        require_whole(folder)
    (folder / "b").write_text("x" * 1234)
    with pytest.raises(DamagedDumpError, match="b: has 1,234 bytes, 4 landed"):
        require_whole(folder)
    (folder / "b").unlink()
    (folder / "b").mkdir()
    with pytest.raises(DamagedDumpError, match="b: landed and no longer exists"):
        require_whole(folder)


@pytest.mark.parametrize(
    ("keep", "through", "removed"),
    [
        (1, None, [1, 2, 3]),
        (2, None, [1, 2]),
        (4, None, []),
        (9, None, []),
        (1, "2026-09-02", [1, 2]),
        (1, "2026-09-01", [1]),
        (1, "2026-08-31", []),
        (1, "", []),
    ],
)
def test_pruning_keeps_so_many_and_all_of_later_dates(tmp_path: Path, keep: int, through: str | None, removed: list[int]) -> None:
    for day in (1, 2, 3, 4):
        mark_broken(lay_dump(tmp_path, f"2026-09-0{day}", a="x"), "bad") if day == 2 else lay_dump(tmp_path, f"2026-09-0{day}", a="x")
    gone = [f"2026-09-0{day}" for day in removed]
    assert names(prune_landings(tmp_path, keep, through)) == gone
    left = {f"2026-09-0{day}" for day in (1, 2, 3, 4)} - set(gone)
    notes = {f"{name}.landed.json" for name in left} | ({"2026-09-02.broken.json"} & {f"{name}.broken.json" for name in left})
    assert {path.name for path in tmp_path.iterdir()} == left | notes


def test_landing_facts_are_plain_values(tmp_path: Path) -> None:
    assert describe_landing(Landing("store_a", "new", tmp_path, None, 3, ["a"])) == {
        "platform": "store_a", "status": "new", "folder": str(tmp_path), "problem": None, "bytes_fetched": 3, "files": ["a"],
        "is_transient": False,
    }  # fmt: skip
    assert describe_landing(Landing("store_a", "missing", None))["folder"] is None


@pytest.mark.parametrize(
    ("count", "expected_text"), [(1, "0"), (10, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"), (11, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 1 more")]
)
def test_message_names_ten_files_and_counts_the_others(count: int, expected_text: str) -> None:
    assert landing_zone._list_names([str(number) for number in range(count)]) == expected_text


# --- fetching one file ---


class Attempts:
    """Stands for `download`: fails as the test says, then writes the file. Remembers pauses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *failures: Exception) -> None:
        self.failures, self.count, self.pauses = list(failures), 0, list[float]()
        monkeypatch.setattr(landing_zone, "download", self.download)
        monkeypatch.setattr("pipeline.dumps.landing.landing_zone.time.sleep", self.pauses.append)

    def download(self, _file_system: object, _file: RemoteFile, partial: Path) -> int:
        self.count += 1
        if self.failures:
            raise self.failures.pop(0)
        partial.write_bytes(b"x" * 1234)
        return 1234


def fetch(target: Path, source: Source = SOURCE, report: Callable[[str], None] = lambda _line: None, system: object = None) -> int:
    return landing_zone._fetch(system or MemoryFileSystem(), RemoteFile("/up/a.csv", "a.csv", 1234), target, source, report)


@pytest.mark.parametrize("failures", range(4))
def test_fetch_is_tried_four_times_with_doubled_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    attempts = Attempts(monkeypatch, *[OSError("reset"), ValueError(), DumpError("short")][:failures])
    reported: list[str] = []
    assert fetch(tmp_path / "deep" / "a.csv", report=reported.append) == 1234
    assert (attempts.count, attempts.pauses) == (failures + 1, [1.0, 2.0, 4.0][:failures])
    reasons = ["reset; trying again in 1 s", "ValueError; trying again in 2 s", "short; trying again in 4 s"][:failures]
    assert reported == [f"store_a: a.csv: {line}" for line in (*reasons, "1,234 bytes fetched")]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.csv"]


def test_fourth_failure_is_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch, *(OSError(str(number)) for number in range(9)))
    with pytest.raises(OSError, match=r"^3$"):
        fetch(tmp_path / "a.csv")
    assert (attempts.count, len(attempts.pauses)) == (4, 3)


@pytest.mark.parametrize(
    ("error", "expected_text"),
    [
        (OSError(errno.ENOSPC, "full"), "full"),
        (OSError(errno.EDQUOT, "quota"), "quota"),
        (FileNotFoundError(errno.ENOENT, "gone"), "a.csv vanished while it was fetched"),
    ],
)
def test_full_disk_and_vanished_file_are_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, expected_text: str
) -> None:
    attempts = Attempts(monkeypatch, error)
    with pytest.raises((OSError, DumpError), match=expected_text):
        fetch(tmp_path / "a.csv")
    assert (attempts.count, attempts.pauses) == (1, [])


def test_file_that_is_there_is_neither_fetched_nor_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch)
    (tmp_path / "a.csv").write_text("here")
    assert fetch(tmp_path / "a.csv") == 0
    assert (attempts.count, (tmp_path / "a.csv").read_text()) == (0, "here")


@pytest.mark.parametrize(("link", "is_local", "is_linked"), [(True, True, True), (False, True, False), (True, False, False)])
def test_only_local_files_are_linked_and_only_when_asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    link: bool,  # noqa: FBT001
    is_local: bool,  # noqa: FBT001
    is_linked: bool,  # noqa: FBT001
) -> None:
    attempts = Attempts(monkeypatch)
    (tmp_path / "origin").write_bytes(b"four")
    file = RemoteFile(str(tmp_path / "origin"), "a.csv", 4)
    system = LocalFileSystem() if is_local else MemoryFileSystem()
    fetched = landing_zone._fetch(system, file, tmp_path / "a.csv", Source("store_a", "/up", link=link), lambda _line: None)
    assert (fetched, attempts.count) == ((0, 0) if is_linked else (1234, 1))
    assert (tmp_path / "a.csv").samefile(tmp_path / "origin") is is_linked


def test_link_leads_to_the_file_itself_and_fails_without_an_error(tmp_path: Path) -> None:
    (tmp_path / "origin").write_bytes(b"four")
    (tmp_path / "link").symlink_to("origin")
    assert link_file(tmp_path / "link", tmp_path / "a") is True
    assert not (tmp_path / "a").is_symlink()
    assert link_file(tmp_path / "origin", tmp_path / "a") is False  # it is there
    assert link_file(tmp_path / "gone", tmp_path / "b") is False


# --- room ---


@pytest.mark.parametrize(
    ("sizes", "free", "expected_text"),
    [
        ((1500, 500), 1000, None),
        ((1500, 500), 999, "needs 1,000 bytes more, 999 are free"),
        ((1500, None), 500, None),
        ((1500, None), 499, "needs 500 bytes more, 499 are free"),
    ],
)
def test_room_counts_files_that_are_here_whole_or_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int | None], free: int, expected_text: str | None
) -> None:
    files = [RemoteFile("/up/a", "a", sizes[0]), RemoteFile("/up/b", "b", sizes[1])]
    (tmp_path / "a.part").write_bytes(b"x" * 600)
    (tmp_path / "b").write_bytes(b"x" * 400)
    (tmp_path / "c").write_bytes(b"x" * 400)
    monkeypatch.setattr(landing_zone.shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(0, 0, free))  # type: ignore[attr-defined]
    landing_zone._require_room(tmp_path, files, Source("store_a", "/up", link=True))
    if expected_text is None:
        landing_zone._require_room(tmp_path, files, SOURCE)
    else:
        with pytest.raises(DumpError, match=expected_text):
            landing_zone._require_room(tmp_path, files, SOURCE)


@pytest.mark.parametrize(("code", "is_kept"), [(errno.ENOSPC, False), (errno.EDQUOT, False), (errno.EIO, True)])
def test_only_a_full_disk_discards_fetched_bytes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    is_kept: bool,  # noqa: FBT001
) -> None:
    (tmp_path / "up" / "2026-09-01").mkdir(parents=True)
    (tmp_path / "up" / "2026-09-01" / "a.csv").write_text("x")
    Attempts(monkeypatch, *(OSError(code, "no luck") for _ in range(4)))
    result = land(Source("store_a", str(tmp_path / "up")), tmp_path / "zone")
    assert (result.status, result.problem) == ("missing", f"store_a: {tmp_path / 'up'}: OSError: [Errno {code}] no luck")
    assert (tmp_path / "zone" / ".incoming").exists() is is_kept


# --- what a killed run left ---


def left(incoming: Path, *, listing: str | None, boot: str | None) -> None:
    (incoming / "sub").mkdir(parents=True)
    for name in ("whole", "sub/half.part", "blind", "blind.part"):
        (incoming / name).write_text("x")
    if listing is not None:
        (incoming / ".listing").write_text(listing)
    if boot is not None:
        (incoming / ".boot").write_text(boot)


@pytest.mark.parametrize(
    ("listing", "boot", "kept"),
    [
        ("this", "now", {"whole", "sub/half.part"}),
        ("this", None, {"whole", "sub/half.part"}),
        ("this", "before", {"whole"}),
        ("other", "now", set()),
        (None, "now", set()),
    ],
)
def test_leftovers_of_a_killed_run_are_kept_when_of_this_dump_and_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: str | None, boot: str | None, kept: set[str]
) -> None:
    (tmp_path / "boot_id").write_text("now\n")
    monkeypatch.setattr(landing_zone, "_BOOT_ID", tmp_path / "boot_id")
    incoming = tmp_path / ".incoming"
    left(incoming, listing=listing, boot=boot)
    landing_zone._discard_other_dump(incoming, "this", [RemoteFile("/up/whole", "whole", 1, ("tag",)), RemoteFile("/up/blind", "blind", 1)])
    markers = {name: (incoming / name).read_text() for name in (".listing", ".boot") if (incoming / name).exists()}
    assert markers == {".listing": "this"} | ({".boot": "now"} if boot or not kept else {})
    assert {path.relative_to(incoming).as_posix() for path in incoming.rglob("*") if path.is_file()} - set(markers) == kept


def test_machine_that_names_no_boot_has_one_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_zone, "_BOOT_ID", tmp_path / "none")
    assert landing_zone._read_boot_id() == ""
    landing_zone._discard_other_dump(tmp_path / ".incoming", "this", [])
    assert (tmp_path / ".incoming" / ".boot").read_text() == ""


# --- sealing ---


def test_free_name_is_the_date_or_the_next_number(tmp_path: Path) -> None:
    taken = []
    for _ in range(4):
        folder = landing_zone._find_free_name(tmp_path, "2026-09-01")
        folder.mkdir()
        taken.append(folder.name)
    assert taken == ["2026-09-01", "2026-09-01.2", "2026-09-01.3", "2026-09-01.4"]


def test_leftovers_are_folders_without_notes_and_notes_without_folders(tmp_path: Path) -> None:
    lay_dump(tmp_path, "2026-09-01", a="x")
    mark_broken(tmp_path / "2026-09-01", "bad")
    kept = {path.name for path in tmp_path.iterdir()} | {"notes.txt", ".incoming", ".hidden.landed.json", "2026-09-01.landed.json.part"}
    (tmp_path / ".incoming").mkdir()
    (tmp_path / "2026-09-02").mkdir()
    (tmp_path / "2026-09-02" / "a").write_text("x")
    for orphan in ("2026-09-03.landed.json", "2026-09-03.broken.json", "2026-09-03.landed.json.part", "2026-09-03.broken.json.part"):
        (tmp_path / orphan).write_text("{}")
    for other in ("notes.txt", ".hidden.landed.json", "2026-09-01.landed.json.part"):
        (tmp_path / other).write_text("{}")
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_dump_is_sealed_without_markers_and_without_an_earlier_verdict(tmp_path: Path) -> None:
    incoming = tmp_path / ".incoming"
    incoming.mkdir()
    for name in (".listing", ".boot", "a"):
        (incoming / name).write_text("x")
    lay_dump(tmp_path, "2026-09-01")
    (tmp_path / "2026-09-01.2.broken.json").write_text("{}")
    folder = landing_zone._seal(incoming, tmp_path, {"platform": "store_a", "date": "2026-09-01"}, [{"name": "a"}])
    assert (folder, names(list(folder.iterdir()))) == (tmp_path / "2026-09-01.2", ["a"])
    assert not is_broken(folder)
    note = json.loads((tmp_path / "2026-09-01.2.landed.json").read_text())
    assert note == {"platform": "store_a", "date": "2026-09-01", "files": [{"name": "a"}]}


# --- verification ---


def test_files_that_changed_while_they_were_fetched_are_named_up_to_ten(tmp_path: Path) -> None:
    before = [RemoteFile(f"/up/{number:02d}", f"{number:02d}", 1, ("old",)) for number in range(12)]
    after = [RemoteFile(file.path, file.name, 1, ("new",)) for file in before]
    (tmp_path / "incoming").mkdir()
    with pytest.raises(DumpError, match=r"fetched: 00, 01, 02, 03, 04, 05, 06, 07, 08, 09; nothing was taken over"):
        landing_zone._verify(tmp_path / "incoming", before, after)
    assert not (tmp_path / "incoming").exists()
    for now in ([*before, RemoteFile("/up/new", "new", 1)], before[:-1]):
        (tmp_path / "incoming").mkdir()
        with pytest.raises(DumpError, match=r"fetched: (new|11); nothing"):
            landing_zone._verify(tmp_path / "incoming", before, now)


def test_records_hold_size_and_hash_of_each_file_in_order(tmp_path: Path) -> None:
    texts = {"b": b"two", "a": b"one"}
    for name, content in texts.items():
        (tmp_path / name).write_bytes(content)
    md5 = hashlib.md5(b"one").hexdigest()  # noqa: S324 - as published
    files = [RemoteFile("/up/b", "b", 3), RemoteFile("/up/a", "a", 3, checksums={"md5": md5})]
    expected = [{"name": name, "bytes": 3, "sha256": hashlib.sha256(texts[name]).hexdigest()} for name in ("a", "b")]
    assert landing_zone._verify(tmp_path, files, files) == expected
    wrong = [files[0], RemoteFile("/up/a", "a", 3, checksums={"md5": "0" * 32})]
    with pytest.raises(DumpError, match=rf"checksums differ, nothing was taken over: a: md5 is {md5}, published is 0{{32}}"):
        landing_zone._verify(tmp_path, wrong, wrong)
    assert not tmp_path.exists()
