"""Tests of upstream listings without a server: each rule that chooses a dump, its date and its marks."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing import upstream
from pipeline.dumps.landing.sources import Source
from pipeline.dumps.landing.upstream import (
    RemoteFile,
    build_remote_file,
    build_remote_files,
    explain_absence,
    find_newest_dump,
    is_match,
    list_dump_files,
    list_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MD5 = "0" * 32


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    """Yield a file system of another machine, empty before and after."""
    system = MemoryFileSystem()
    MemoryFileSystem.store.clear()
    yield system
    MemoryFileSystem.store.clear()


def put(memory: MemoryFileSystem, *paths: str, content: bytes = b"x") -> None:
    for path in paths:
        memory.pipe_file(f"/up/{path}", content)


def source(**more: Any) -> Source:  # noqa: ANN401 - the fields of a source
    return Source("store_a", "memory://up", **more)


def names(files: list[RemoteFile]) -> list[str]:
    return [file.name for file in files]


class Web:
    """An HTTP file system of which only listings are known: folder -> entries, None for one that is not found."""

    protocol = ("http", "https")

    def __init__(self, folders: dict[str, list[str] | None]) -> None:
        self.folders = folders
        self.asked: list[str] = []

    def _strip_protocol(self, path: str) -> str:
        return path

    def ls(self, path: str, *, detail: bool) -> list[dict[str, object]]:
        assert detail
        self.asked.append(path)
        entries = self.folders.get(path, [])
        if entries is None:
            raise FileNotFoundError(path)
        return [{"name": entry, "type": "directory" if entry.endswith("/") else "file", "size": 1} for entry in entries]


@pytest.mark.parametrize(
    ("file", "is_change_visible", "is_cut_visible"),
    [
        (RemoteFile("p", "n", None), False, False),
        (RemoteFile("p", "n", 0), False, True),
        (RemoteFile("p", "n", None, ("ETag=1",)), True, False),
        (RemoteFile("p", "n", None, checksums={"md5": MD5}), True, True),
        (RemoteFile("p", "n", None, lines="l"), True, False),
        (RemoteFile("p", "n", 3, entity_tag="e", modified="m", modified_at=1.0, changed_ns=2), False, True),
    ],
)
def test_change_is_visible_by_validators_and_cut_by_size(file: RemoteFile, is_change_visible: bool, is_cut_visible: bool) -> None:  # noqa: FBT001
    assert (file.is_change_visible, file.is_cut_visible) == (is_change_visible, is_cut_visible)


def test_marks_hold_all_that_identifies_a_delivery_and_only_the_lines_of_a_checksum_file() -> None:
    file = RemoteFile("p", "n", 3, ("ETag=1",), 7, {"sha1": "b", "md5": "a"})
    assert file.marks == ("n", 3, ("ETag=1",), 7, [("md5", "a"), ("sha1", "b")])
    assert file.marks_while_fetched == ("n", [("md5", "a"), ("sha1", "b")])
    assert replace(file, checksums={}).marks_while_fetched == ("n", 3, ("ETag=1",))
    listing = replace(file, lines="l")
    assert listing.marks == listing.marks_while_fetched == ("n", "l")


def test_newest_of_several_dated_folders_is_the_dump(memory: MemoryFileSystem) -> None:
    put(memory, "2026-08-01/a.csv", "2026-09-01/b.csv", "2026-09-01/sub/c.csv", "2026-07-01/d.csv")
    dump = find_newest_dump(memory, "/up", source())
    assert (dump.date, dump.is_dated, dump.folder, names(dump.files)) == ("2026-09-01", True, "2026-09-01", ["b.csv", "sub/c.csv"])
    assert (dump.older, dump.strays) == ((), ())


def test_date_far_in_the_future_hides_no_later_dump(memory: MemoryFileSystem) -> None:
    put(memory, "2026-09-01/a.csv", "2062-08-01/b.csv", "2062-08-01/sub/c.csv")
    dump = find_newest_dump(memory, "/up", source())
    assert (dump.date, dump.folder, names(dump.files)) == ("2026-09-01", "2026-09-01", ["a.csv"])
    assert dump.ahead == ("2062-08-01/b.csv", "2062-08-01/sub/c.csv")
    assert (dump.older, dump.strays) == ((), ())


def test_date_far_in_the_future_hides_no_later_file(memory: MemoryFileSystem) -> None:
    put(memory, "tracks-20260901.csv", "tracks-99991231.csv")
    dump = find_newest_dump(memory, "/up", source())
    assert (dump.date, names(dump.files), dump.ahead) == ("2026-09-01", ["tracks-20260901.csv"], ("tracks-99991231.csv",))


def test_dumps_that_are_all_dated_in_the_future_are_no_dump(memory: MemoryFileSystem) -> None:
    put(memory, "2062-08-01/b.csv")
    with pytest.raises(DumpError, match=r"all dates are after .*: 2062-08-01/b\.csv; look at the names, and at the clock"):
        find_newest_dump(memory, "/up", source())


def test_folder_whose_name_only_begins_alike_is_another_dump(memory: MemoryFileSystem) -> None:
    put(memory, "2026-09-01/a.csv", "2026-09-01-old/b.csv")
    dump = find_newest_dump(memory, "/up", source(dated=True))
    assert (dump.folder, names(dump.files)) == ("2026-09-01-old", ["b.csv"])
    dump = find_newest_dump(memory, "/up", source())
    assert (dump.folder, dump.date, names(dump.files)) == ("", "2026-09-01", ["2026-09-01-old/b.csv", "2026-09-01/a.csv"])


def test_files_beside_dated_folders_are_strays_by_default(memory: MemoryFileSystem) -> None:
    put(memory, "2026-09-01/a.csv", "stray.csv")
    assert find_newest_dump(memory, "/up", source()).strays == ("stray.csv",)
    assert find_newest_dump(memory, "/up", source(dated=True)).strays == ()
    flat = find_newest_dump(memory, "/up", source(dated=False))
    assert (flat.folder, flat.strays, flat.date, names(flat.files)) == ("", (), "2026-09-01", ["2026-09-01/a.csv", "stray.csv"])


def test_undated_folder_beside_a_dated_one_makes_the_delivery_flat(memory: MemoryFileSystem) -> None:
    put(memory, "2026-09-01/a.csv", "extra/b.csv")
    dump = find_newest_dump(memory, "/up", source())
    assert (dump.folder, names(dump.files), dump.strays) == ("", ["2026-09-01/a.csv", "extra/b.csv"], ())


def test_flat_delivery_takes_the_newest_date_of_its_names_and_files_without_one(memory: MemoryFileSystem) -> None:
    put(memory, "a_20260801.csv", "a_20260901.csv", "b_20260801.csv", "notes.txt")
    dump = find_newest_dump(memory, "/up", source())
    assert (dump.date, dump.is_dated, dump.folder) == ("2026-09-01", True, "")
    assert names(dump.files) == ["a_20260901.csv", "notes.txt"]
    assert dump.older == ("a_20260801.csv",)


def test_files_of_a_dump_stay_its_own_when_a_newer_one_appears(memory: MemoryFileSystem) -> None:
    put(memory, "2026-08-01/a.csv")
    dump = find_newest_dump(memory, "/up", source())
    put(memory, "2026-09-01/b.csv")
    assert names(list_dump_files(memory, "/up", source(), dump)) == ["a.csv"]
    put(memory, "flat/a_20260801.csv")
    dump = find_newest_dump(memory, "/up/flat", source())
    put(memory, "flat/a_20260901.csv")
    assert names(list_dump_files(memory, "/up/flat", source(), dump)) == ["a_20260801.csv"]


def test_dump_without_a_date_is_of_the_day_its_newest_file_was_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, moment in (("a.csv", datetime(2026, 3, 1, 23, 59, tzinfo=UTC)), ("b.csv", datetime(2026, 2, 28, tzinfo=UTC))):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (moment.timestamp(), moment.timestamp()))
    dump = find_newest_dump(LocalFileSystem(), str(tmp_path), Source("store_a", str(tmp_path)))
    assert (dump.date, dump.is_dated) == ("2026-03-01", False)
    monkeypatch.setattr(time, "time", lambda: 86400.0 * 2)
    assert upstream._find_modified_date([RemoteFile("p", "n", 1)]) == "1970-01-03"
    assert upstream._find_modified_date([RemoteFile("p", "n", 1, modified_at=0.0)]) == "1970-01-01"


def test_source_without_a_dump_gives_the_reason(memory: MemoryFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memory, *(f"{letter}.csv" for letter in "abcdefghijkl"))
    assert explain_absence(source(dated=True)) == (
        "store_a: looked for any file in memory://up: no dated sub-folder (YYYY-MM-DD, YYYYMMDD ...)"
    )
    message = explain_absence(source(files=("*.tar", "x*")))
    assert message.startswith("store_a: looked for *.tar or x* in memory://up: no file matches ['*.tar', 'x*']; there are ['a.csv', ")
    assert message.endswith("'j.csv']"), "ten of twelve"
    assert explain_absence(source()) == "store_a: looked for any file in memory://up: it is there, and was not taken over; the log says why"
    empty = Source("store_a", "memory://other")
    MemoryFileSystem().makedirs("/other", exist_ok=True)
    assert explain_absence(empty).endswith("nothing there: the folder is missing or empty")
    assert explain_absence(Source("store_a", str(tmp_path))).endswith(f"{tmp_path}: nothing there: the folder is empty")

    def fail(_source: Source) -> None:
        raise ConnectionError("reset")

    monkeypatch.setattr(upstream, "open_source", fail)
    assert explain_absence(source()).endswith("memory://up: ConnectionError: reset")


def test_hidden_files_and_folders_are_not_shown(memory: MemoryFileSystem) -> None:
    put(memory, "a.csv", ".DS_Store", "sub/._b.csv", ".cache/c.csv", "sub/d.e.csv")
    assert list(list_files(memory, "/up")) == ["a.csv", "sub/d.e.csv"]


@pytest.mark.parametrize(
    ("name", "glob", "is_chosen"),
    [
        ("deep/a.csv", "**", True),
        ("deep/a.csv", "*.csv", True),
        ("deep/a.csv", "a.*", True),
        ("deep/a.csv", "deep/*", True),
        ("deep/a.csv", "deep", False),
        ("deep/a.csv", "*.tar", False),
    ],
)
def test_glob_chooses_by_path_or_by_name(name: str, glob: str, is_chosen: bool) -> None:  # noqa: FBT001
    assert is_match(name, glob) is is_chosen


# --- listings over HTTP ---


def test_web_folders_are_listed_once_and_only_below_the_address() -> None:
    web = Web(
        {
            "http://x/up/": [f"http://{name}" for name in ("x/up/a.csv", "x/up/sub/", "x/", "x/up/../secret/", "x/up/./", "y/up/")],
            "http://x/up/sub/": [f"http://x/up/{name}" for name in ("sub/b.csv", "", "sub/", "sub/gone/")],
            "http://x/up/sub/gone/": None,
        }
    )
    assert list(list_files(web, "http://x/up/")) == ["a.csv", "sub/b.csv"]
    assert web.asked == ["http://x/up/", "http://x/up/sub/", "http://x/up/sub/gone/"]


def test_links_that_sort_a_web_folder_are_no_files() -> None:
    sorting = [f"http://x/{folder}?C={column};O=A" for folder in ("", "2026-09-01/") for column in "NMSD"]
    day = [f"http://x/2026-09-01/{name}" for name in ("a.csv", "a.csv#top", "b.csv?version=2")]
    web = Web({"http://x/": [*sorting[:4], "http://x/2026-09-01/"], "http://x/2026-09-01/": [*sorting[4:], *day]})
    assert list(list_files(web, "http://x/")) == ["2026-09-01/a.csv", "2026-09-01/b.csv?version=2"]


def test_web_address_that_is_not_found_is_reported() -> None:
    with pytest.raises(DumpError, match="nothing there: the address is not found"):
        list_files(Web({"http://x/up/": None}), "http://x/up")
    with pytest.raises(DumpError, match="nothing there: the folder is missing or empty"):
        list_files(Web({"http://x/up/": []}), "http://x/up")


@pytest.mark.parametrize(("below", "is_refused"), [(3, False), (4, True)])
def test_web_with_more_folders_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch, below: int, is_refused: bool) -> None:  # noqa: FBT001
    monkeypatch.setattr(upstream, "MOST_FOLDERS", 4)
    web = Web({"http://x/": [*(f"http://x/{number}/" for number in range(below)), "http://x/a.csv"]})
    if is_refused:
        with pytest.raises(DumpError, match="more than 4 folders below the address"):
            list_files(web, "http://x/")
    else:
        assert list(list_files(web, "http://x/")) == ["a.csv"]


# --- local folders ---


def test_missing_local_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path, message in (
        ("gone", "nothing there: there is no such folder"),
        ("file", "nothing there: it is not a folder"),
        ("file/below", r"file/below: cannot be read \(Not a directory\): give the user"),
    ):
        with pytest.raises(DumpError, match=message):
            list_files(LocalFileSystem(), str(tmp_path / path))


def test_folder_that_vanishes_during_listing_is_ignored_and_an_unreadable_one_is_an_error() -> None:
    upstream._refuse_folder(FileNotFoundError(2, "No such file", "/up/gone"))
    with pytest.raises(DumpError, match=r"^/up/closed: cannot be read \(Permission denied\)"):
        upstream._refuse_folder(PermissionError(13, "Permission denied", "/up/closed"))


def test_local_file_is_marked_by_its_target(tmp_path: Path) -> None:
    (tmp_path / "origin").write_bytes(b"four")
    (tmp_path / "link").symlink_to("origin")
    found = (tmp_path / "origin").stat()
    file = build_remote_file(LocalFileSystem(), "a.csv", {"name": str(tmp_path / "link"), "size": 6}, {"md5": MD5}, "l")
    assert file == RemoteFile(
        str(tmp_path / "link"), "a.csv", 4, (f"mtime_ns={found.st_mtime_ns}", f"inode={found.st_ino}"), found.st_ctime_ns, {"md5": MD5},
        lines="l", modified_at=found.st_mtime,
    )  # fmt: skip
    (tmp_path / "origin").unlink()
    with pytest.raises(DumpError, match=r"link: cannot be read \(No such file or directory\); is it a link that leads nowhere\?"):
        build_remote_file(LocalFileSystem(), "a.csv", {"name": str(tmp_path / "link")})
    assert build_remote_file(LocalFileSystem(), "a.csv", {"name": __file__}).checksums == {}


# --- files of other machines ---


@pytest.mark.parametrize(
    ("info", "validators", "tag", "modified", "modified_at"),
    [
        ({}, (), None, None, None),
        ({"ETag": '"e"', "etag": '"f"'}, ('ETag="e"', 'etag="f"'), '"e"', None, None),
        ({"etag": '"f"', "md5": "m"}, ('etag="f"', "md5=m"), '"f"', None, None),
        (
            {"Last-Modified": "Mon, 01 Jun 2026 00:00:00 GMT"},
            ("Last-Modified=Mon, 01 Jun 2026 00:00:00 GMT",),
            None,
            "Mon, 01 Jun 2026 00:00:00 GMT",
            1780272000.0,
        ),
        ({"mtime": 7}, ("mtime=7",), None, None, 7.0),
        ({"mtime": 7.5, "generation": 3}, ("mtime=7.5", "generation=3"), None, None, 7.5),
        ({"LastModified": datetime(1970, 1, 2, tzinfo=UTC)}, ("LastModified=1970-01-02 00:00:00+00:00",), None, None, 86400.0),
        ({"Last-Modified": "soon", "mtime": 7}, ("Last-Modified=soon", "mtime=7"), None, "soon", 7.0),
        ({"Last-Modified": "soon"}, ("Last-Modified=soon",), None, "soon", None),
        ({"modified": "", "updated": None, "VersionId": 0}, (), None, None, None),
    ],
)
def test_every_validator_that_a_file_system_names_is_a_mark(
    info: dict[str, object], validators: tuple[str, ...], tag: str | None, modified: str | None, modified_at: float | None
) -> None:
    file = build_remote_file(Web({}), "a.csv", {"name": "http://x/a.csv", "size": 3, **info}, {"md5": MD5}, "l")
    expected = RemoteFile("http://x/a.csv", "a.csv", 3, validators, None, {"md5": MD5}, tag, modified, modified_at, "l")
    assert file == expected


def test_size_that_a_listing_leaves_out_is_asked_for(memory: MemoryFileSystem) -> None:
    put(memory, "a.csv", content=b"four")
    assert build_remote_file(memory, "a.csv", {"name": "/up/a.csv"}).size == 4
    assert build_remote_file(memory, "a.csv", {"name": "/up/a.csv", "size": 0}).size == 0


def test_checksum_files_cover_chosen_files_and_are_marked_by_their_content(memory: MemoryFileSystem) -> None:
    put(memory, "a.csv", "b.csv")
    put(memory, "MD5SUMS", content=f"{MD5} a.csv\n".encode())
    put(memory, "a.csv.sha256", content=b"f" * 64)
    put(memory, "SHA1SUMS", content=b"nothing of use")
    shown = list_files(memory, "/up")
    chosen = {name: shown[name] for name in ("a.csv", "b.csv", "MD5SUMS", "SHA1SUMS")}
    found = {file.name: file for file in build_remote_files(memory, chosen, shown)}
    assert {name: dict(file.checksums) for name, file in found.items()} == {
        "a.csv": {"md5": MD5, "sha256": "f" * 64},
        "b.csv": {},
        "MD5SUMS": {},
        "SHA1SUMS": {},
    }
    assert [name for name, file in found.items() if file.lines] == ["MD5SUMS"]
    said = [("a.csv", [("md5", MD5)])]
    assert found["MD5SUMS"].lines == hashlib.sha256(repr(said).encode()).hexdigest()


@pytest.mark.parametrize(("more", "is_read"), [(0, True), (1, False)])
def test_checksum_file_longer_than_the_limit_is_ignored(
    memory: MemoryFileSystem,
    monkeypatch: pytest.MonkeyPatch,
    more: int,
    is_read: bool,  # noqa: FBT001
) -> None:
    line = f"{MD5} a.csv\n".encode()
    monkeypatch.setattr(upstream, "LARGEST_LIST_BYTES", len(line))
    put(memory, "a.csv")
    put(memory, "MD5SUMS", content=line + b"\n" * more)
    shown = list_files(memory, "/up")
    [file] = build_remote_files(memory, {"a.csv": shown["a.csv"]}, shown)
    assert dict(file.checksums) == ({"md5": MD5} if is_read else {})


def test_checksum_file_that_vanishes_is_reported(memory: MemoryFileSystem) -> None:
    with pytest.raises(DumpError, match="MD5SUMS vanished while it was read"):
        build_remote_files(memory, {}, {"MD5SUMS": {"name": "/up/MD5SUMS", "size": 1}})
