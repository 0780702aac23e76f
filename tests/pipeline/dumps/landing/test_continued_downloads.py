"""Downloads that a killed run left, and what servers answer: which parts are continued, joined or fetched again."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import pytest
from fsspec.implementations.local import LocalFileSystem

from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.landed_dumps import list_landed_dumps, mark_broken
from pipeline.dumps.landing.transfer import download
from pipeline.dumps.landing.upstream import RemoteFile, build_remote_file
from tests.pipeline.dumps.landing.landed_dumps import MONDAY, TUESDAY, content, fetched, left_behind, sums

from .http_upstream import Upstream, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("quick_retries")


# --- what may be continued ---


@pytest.mark.parametrize("kind", ["entity_tags", "modified", "checksums", "nothing"])
def test_partial_download_of_another_dump_is_never_continued(upstream: Upstream, zone: Path, kind: str) -> None:
    old, new = b"o" * 5000, b"n" * 5000
    upstream.entity_tags, upstream.modified = kind == "entity_tags", MONDAY if kind == "modified" else None
    upstream.files = {"2026-09-01/a.csv": old} | ({"2026-09-01/SHA256SUMS": sums(a__csv=old)} if kind == "checksums" else {})
    left_behind(upstream, zone, old[:2000])
    upstream.files = {"2026-09-01/a.csv": new} | ({"2026-09-01/SHA256SUMS": sums(a__csv=new)} if kind == "checksums" else {})
    upstream.modified = TUESDAY if kind == "modified" else None
    result = fetched(upstream, zone)
    assert (result.problem, content(result)) == (None, new)
    assert upstream.fetches("2026-09-01/a.csv") == [(None, 200)]


@pytest.mark.parametrize("kind", ["entity_tags", "modified", "checksums"])
def test_partial_download_of_the_same_dump_is_continued(upstream: Upstream, zone: Path, kind: str) -> None:
    body = os.urandom(5000)
    upstream.entity_tags, upstream.modified = kind == "entity_tags", MONDAY if kind == "modified" else None
    upstream.files = {"2026-09-01/a.csv": body} | ({"2026-09-01/SHA256SUMS": sums(a__csv=body)} if kind == "checksums" else {})
    left_behind(upstream, zone, body[:2000])
    result = fetched(upstream, zone)
    assert content(result) == body
    assert upstream.fetches("2026-09-01/a.csv") == [("bytes=2000-", 206)]


def test_partial_download_without_a_marker_is_not_continued(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"n" * 5000}, True
    left_behind(upstream, zone, b"o" * 2000)
    (zone / ".incoming" / ".listing").unlink()
    assert content(fetched(upstream, zone)) == b"n" * 5000


def test_partial_download_from_before_a_reboot_is_not_trusted(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"n" * 5000}, True
    left_behind(upstream, zone, b"\0" * 2000)
    (zone / ".incoming" / ".boot").write_text("an earlier start of this machine")
    assert content(fetched(upstream, zone)) == b"n" * 5000


def test_file_replaced_between_two_attempts_is_not_mixed(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"o" * 5000}, True
    upstream.breaks = 1

    def replace(_path: str) -> None:
        upstream.files = {"2026-09-01/a.csv": b"n" * 5000}

    upstream.on_get = replace
    first = fetched(upstream, zone)
    assert first.status == "missing"
    assert "changed while it was fetched: a.csv" in str(first.problem)
    assert not (zone / ".incoming").exists()
    assert content(fetched(upstream, zone)) == b"n" * 5000


def test_weak_entity_tags_are_no_ground_to_continue(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.weak_tags, upstream.breaks = {"2026-09-01/a.csv": b"n" * 5000}, True, 1
    assert content(fetched(upstream, zone)) == b"n" * 5000
    assert upstream.fetches("2026-09-01/a.csv") == [(None, 200), (None, 200)]


# --- what servers do ---


def test_server_that_ignores_ranges_is_read_from_the_beginning(upstream: Upstream, zone: Path) -> None:
    body = os.urandom(20_000_000)
    upstream.files, upstream.entity_tags, upstream.ranges = {"2026-09-01/a.csv": body}, True, False
    upstream.breaks, upstream.give = 1, 12_000_000
    result = fetched(upstream, zone)
    assert (result.problem, content(result) == body) == (None, True)
    assert upstream.fetches("2026-09-01/a.csv") == [(None, 200), ("bytes=12000000-", 200)]


@pytest.mark.parametrize("announced", [2999, 3001])
def test_another_size_than_announced_is_refused(upstream: Upstream, zone: Path, announced: int) -> None:
    upstream.files, upstream.announce = {"2026-09-01/a.csv": b"n" * 3000}, lambda _path, _content: announced
    result = fetched(upstream, zone)
    assert result.status == "missing"
    assert f"{announced:,}" in str(result.problem)
    assert "announced" in str(result.problem)
    assert list_landed_dumps(zone) == []


@pytest.mark.parametrize("announced", [2999, 3001])
def test_another_size_than_announced_is_refused_by_every_file_system(zone: Path, announced: int) -> None:
    class Lying(LocalFileSystem):  # type: ignore[misc] - fsspec has no types
        protocol = "lying"

        def info(self, path: object, **more: object) -> dict[str, object]:
            found: dict[str, object] = super().info(path, **more)
            return {**found, "size": announced} if found["type"] == "file" else found

    (zone / "up" / "2026-09-01").mkdir(parents=True)
    (zone / "up" / "2026-09-01" / "a.csv").write_bytes(b"n" * 3000)
    file = build_remote_file(Lying(), "a.csv", {"name": str(zone / "up" / "2026-09-01" / "a.csv"), "size": announced, "mtime": 1.0})
    with pytest.raises(DumpError, match=rf"^a\.csv: .* {announced:,} (bytes that it|were) announced$"):
        download(Lying(), file, zone / "part")


@pytest.mark.parametrize("header", ["bytes 1999-4999/5000", "bytes 2000-4999/6000", "bytes 2000-4999", "", "bytes */5000"])
def test_partial_answer_that_is_not_the_rest_of_the_file_is_never_joined_on(upstream: Upstream, zone: Path, header: str) -> None:
    body = os.urandom(5000)
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": body}, True
    left_behind(upstream, zone, body[:2000])
    upstream.tell_range = lambda _start, _size: header
    result = fetched(upstream, zone)
    assert content(result) == body
    assert upstream.fetches("2026-09-01/a.csv") == [("bytes=2000-", 206), (None, 200)], "from the beginning"


def test_partial_answer_of_a_file_of_unknown_size_is_its_rest(upstream: Upstream, zone: Path) -> None:
    body = os.urandom(5000)
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": body}, True
    left_behind(upstream, zone, body[:2000])
    upstream.tell_range = lambda start, size: f"bytes {start}-{size - 1}/*"
    assert content(fetched(upstream, zone)) == body
    assert upstream.fetches("2026-09-01/a.csv") == [("bytes=2000-", 206)]


def test_download_that_was_whole_when_the_run_was_killed_is_not_fetched_again(upstream: Upstream, zone: Path) -> None:
    body = os.urandom(5000)
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": body}, True
    left_behind(upstream, zone, body)
    result = fetched(upstream, zone)
    assert (content(result), result.bytes_fetched, upstream.fetches("2026-09-01/a.csv")) == (body, 0, [])


@pytest.mark.parametrize(
    ("is_change_visible", "left", "fetched_bytes"),
    [
        (True, b"n" * 2000, 1000),
        (True, b"n" * 3000, 0),
        (True, b"o" * 3001, 3000),  # longer than the file: of another
        (False, b"o" * 2000, 3000),  # nothing shows that it is of this file
        (False, b"o" * 3000, 3000),
    ],
)
def test_file_system_continues_only_what_can_be_the_beginning_of_the_file(
    tmp_path: Path,
    is_change_visible: bool,  # noqa: FBT001
    left: bytes,
    fetched_bytes: int,
) -> None:
    (tmp_path / "a.csv").write_bytes(b"n" * 3000)
    (tmp_path / "part").write_bytes(left)
    file = RemoteFile(str(tmp_path / "a.csv"), "a.csv", 3000, ("tag",) if is_change_visible else ())
    assert download(LocalFileSystem(), file, tmp_path / "part") == fetched_bytes
    assert (tmp_path / "part").read_bytes() == b"n" * 3000


def test_broken_dump_of_unknown_length_is_fetched_again(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.modified, upstream.announce_length = {"2026-09-01/a.csv": b"n" * 3000}, MONDAY, False
    cut = fetched(upstream, zone)
    assert cut.folder is not None
    (cut.folder / "a.csv").write_bytes(b"n" * 1000)  # what a connection that was cut off leaves, unnoticed
    note = json.loads((zone / "2026-09-01.landed.json").read_text())
    note["files"] = [{"name": "a.csv", "bytes": 1000, "sha256": hashlib.sha256(b"n" * 1000).hexdigest()}]
    (zone / "2026-09-01.landed.json").write_text(json.dumps(note))
    mark_broken(cut.folder, "ends in the middle of a row")
    again = fetched(upstream, zone)
    assert (again.status, content(again)) == ("new", b"n" * 3000)


def test_file_that_the_server_stores_compressed_lands_as_it_is_stored(upstream: Upstream, zone: Path) -> None:
    import gzip  # noqa: PLC0415 - only here

    body = gzip.compress(b"row\n" * 1000)
    upstream.files, upstream.entity_tags, upstream.encoding = {"2026-09-01/a.csv.gz": body}, True, "gzip"
    assert content(fetched(upstream, zone), "a.csv.gz") == body
    upstream.files = {"2026-10-01/a.csv": body}
    assert "the server encodes it as gzip" in str(fetched(upstream, zone).problem)


def test_redirected_file_lands_under_its_own_name(upstream: Upstream, zone: Path) -> None:
    upstream.entity_tags = True
    with serving(Upstream(files={"mirror/x.bin": b"one"}, entity_tags=True)) as mirror:
        upstream.moved = {"2026-09-01/a.csv": f"{mirror.address}mirror/x.bin"}
        assert content(fetched(upstream, zone)) == b"one"
        assert fetched(upstream, zone).status == "unchanged"


def test_file_that_appears_while_the_others_are_fetched_is_not_left_out(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    upstream.on_get = lambda _path: upstream.files.update({"2026-09-01/b.csv": b"two"})
    assert "changed while it was fetched: b.csv" in str(fetched(upstream, zone).problem)
    result = fetched(upstream, zone)
    assert (content(result), content(result, "b.csv")) == (b"one", b"two")


def test_newer_dump_that_appears_while_one_is_fetched_waits(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    upstream.on_get = lambda _path: upstream.files.update({"2026-10-01/a.csv": b"two"})
    assert (fetched(upstream, zone).folder, fetched(upstream, zone).folder) == (zone / "2026-09-01", zone / "2026-10-01")
