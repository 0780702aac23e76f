"""When two deliveries are one, and when they only look alike: equal names and sizes under every kind of source."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from fsspec.implementations.local import LocalFileSystem

from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.newest_dump import stage_newest
from pipeline.dumps.landing import landing_zone
from pipeline.dumps.landing.landing_zone import (
    find_last_good,
    forgive_broken,
    land,
    list_landed_dumps,
    mark_broken,
    prune_landings,
    require_whole,
)
from pipeline.dumps.landing.sources import Source
from pipeline.dumps.landing.transfer import download
from pipeline.dumps.landing.upstream import RemoteFile, build_remote_file

from .http_upstream import Upstream, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.dumps.landing.landing_zone import Landing

MONDAY, TUESDAY = "Mon, 01 Jun 2026 00:00:00 GMT", "Tue, 02 Jun 2026 00:00:00 GMT"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_zone, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with serving(Upstream()) as served:
        yield served


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    return tmp_path / "zone"


def fetched(upstream: Upstream, zone: Path, **more: object) -> Landing:
    return land(Source("store_a", upstream.address, **more), zone)  # type: ignore[arg-type]


def local(folder: Path, zone: Path, **more: object) -> Landing:
    return land(Source("store_a", str(folder), **more), zone)  # type: ignore[arg-type]


def sums(**files: bytes) -> bytes:
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name.replace('__', '.')}\n" for name, content in files.items()).encode()


def content(result: Landing, name: str = "a.csv") -> bytes:
    assert result.folder is not None, result.problem
    return (result.folder / name).read_bytes()


# --- HTTP without validators ---


def test_new_dated_folder_of_equal_names_and_sizes_lands_when_http_has_no_validators(upstream: Upstream, zone: Path) -> None:
    upstream.files = {"2026-09-01/a.csv": b"one", "2026-09-01/SHA256SUMS": sums(a__csv=b"one")}
    assert fetched(upstream, zone).status == "new"
    upstream.files |= {"2026-10-01/a.csv": b"two", "2026-10-01/SHA256SUMS": sums(a__csv=b"two")}
    second = fetched(upstream, zone)
    assert (second.status, second.problem, content(second)) == ("new", None, b"two")
    assert second.folder == zone / "2026-10-01"
    assert fetched(upstream, zone).status == "unchanged"


def test_new_date_alone_makes_a_new_dump(upstream: Upstream, zone: Path) -> None:
    upstream.files = {"2026-09-01/a.csv": b"one"}
    upstream.entity_tags = True
    fetched(upstream, zone)
    upstream.files = {"2026-10-01/a.csv": b"one"}
    assert fetched(upstream, zone).folder == zone / "2026-10-01"


@pytest.mark.parametrize("listing", ["SHA256SUMS", "a.csv.sha256", "dump_20260901_CHECKSUM.txt", "sha256sum.txt"])
@pytest.mark.parametrize("globs", [("**",), ("*.csv",)])
def test_published_checksum_alone_reveals_a_replaced_file(upstream: Upstream, zone: Path, listing: str, globs: tuple[str, ...]) -> None:
    upstream.files = {"2026-09-01/a.csv": b"one", f"2026-09-01/{listing}": sums(a__csv=b"one")}
    assert fetched(upstream, zone, files=globs).status == "new"
    again = fetched(upstream, zone, files=globs)
    assert (again.status, again.bytes_fetched) == ("unchanged", 0)
    upstream.files = {"2026-09-01/a.csv": b"two", f"2026-09-01/{listing}": sums(a__csv=b"two")}
    second = fetched(upstream, zone, files=globs)
    assert (second.status, second.problem, content(second)) == ("new", None, b"two")


def test_checksum_file_with_lines_in_another_order_changes_nothing(upstream: Upstream, zone: Path) -> None:
    lines = sums(a__csv=b"one", b__csv=b"two")
    upstream.files = {"2026-09-01/a.csv": b"one", "2026-09-01/b.csv": b"two", "2026-09-01/SHA256SUMS": lines}
    fetched(upstream, zone)
    upstream.files["2026-09-01/SHA256SUMS"] = b"# made anew\n" + b"".join(reversed(lines.splitlines(keepends=True)))
    again = fetched(upstream, zone)
    assert (again.status, again.problem, again.bytes_fetched) == ("unchanged", None, 0)


def test_files_without_validators_are_fetched_and_compared(upstream: Upstream, zone: Path) -> None:
    upstream.files = {"2026-09-01/a.csv": b"one"}
    told: list[str] = []
    first = land(Source("store_a", upstream.address), zone, told.append)
    again = fetched(upstream, zone)
    assert (again.status, again.folder, again.bytes_fetched) == ("unchanged", first.folder, 3)
    assert any("a.csv" in line and "fetched each night" in line for line in told)
    upstream.files = {"2026-09-01/a.csv": b"two"}
    second = fetched(upstream, zone)
    assert (second.status, content(second)) == ("new", b"two")
    assert len(list_landed_dumps(zone)) == 2


@pytest.mark.parametrize("dated", [True, False])
def test_last_modified_separates_two_deliveries(upstream: Upstream, zone: Path, dated: bool) -> None:  # noqa: FBT001
    prefix = "2026-09-01/" if dated else ""
    upstream.files, upstream.modified = {f"{prefix}a.csv": b"one"}, MONDAY
    assert fetched(upstream, zone).folder == zone / ("2026-09-01" if dated else "2026-06-01")
    assert fetched(upstream, zone).bytes_fetched == 0
    upstream.files, upstream.modified = {f"{prefix}a.csv": b"two"}, TUESDAY
    assert content(fetched(upstream, zone)) == b"two"


def test_validators_that_change_over_equal_content_are_no_new_dump(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.modified = {"2026-09-01/a.csv": b"one"}, MONDAY
    first = fetched(upstream, zone)
    upstream.modified = TUESDAY
    again = fetched(upstream, zone)
    assert (again.status, again.folder, again.bytes_fetched) == ("unchanged", first.folder, 3)
    assert fetched(upstream, zone).bytes_fetched == 0


def test_server_that_is_down_and_folder_that_cannot_be_listed_are_reported(upstream: Upstream, zone: Path) -> None:
    upstream.entity_tags = True
    upstream.files = {"2026-09-01/a.csv": b"one", "2026-10-01/a.csv": b"two"}
    upstream.broken_folders = {"2026-10-01/"}
    told = fetched(upstream, zone)
    assert (told.status, "503" in str(told.problem)) == ("missing", True)  # not the older one, as if it were the newest
    upstream.broken_folders = set()
    first = fetched(upstream, zone)
    assert content(first) == b"two"
    down = land(Source("store_a", "http://127.0.0.1:1/"), zone)
    assert (down.status, down.folder) == ("kept_last_good", first.folder)
    assert "Cannot connect" in str(down.problem)
    gone = land(Source("store_a", f"{upstream.address}gone/"), zone)
    assert "nothing there" in str(gone.problem)


# --- local folders ---


def test_local_file_changed_in_place_with_its_time_set_back_lands_anew(tmp_path: Path, zone: Path) -> None:
    file = tmp_path / "up" / "2026-09-01" / "a.csv"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"one")
    times = file.stat()
    local(tmp_path / "up", zone)
    file.write_bytes(b"two")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = local(tmp_path / "up", zone)
    assert (second.status, content(second)) == ("new", b"two")


def test_link_that_leads_to_another_file_of_the_same_size_lands_anew(tmp_path: Path, zone: Path) -> None:
    folder = tmp_path / "up" / "2026-09-01"
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (1, 1))
    (folder / "a.csv").symlink_to("../../one")
    os.utime(folder / "a.csv", (1, 1), follow_symlinks=False)
    assert content(local(tmp_path / "up", zone)) == b"one"
    (folder / "a.csv").unlink()
    (folder / "a.csv").symlink_to("../../two")
    os.utime(folder / "a.csv", (1, 1), follow_symlinks=False)
    assert content(local(tmp_path / "up", zone)) == b"two"


@pytest.mark.parametrize("keeps_time", [True, False])
def test_linked_file_changed_in_place_is_reported_and_lands_anew(tmp_path: Path, zone: Path, keeps_time: bool) -> None:  # noqa: FBT001
    file = tmp_path / "up" / "2026-09-01" / "a.csv"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"one")
    first = local(tmp_path / "up", zone, link=True)
    assert first.folder is not None
    times = file.stat()
    assert (local(tmp_path / "up", zone, link=True).status, len(list_landed_dumps(zone))) == ("unchanged", 1)
    file.write_bytes(b"two")
    if keeps_time:
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(DumpError, match=r"a\.csv: has other content than landed"):
        require_whole(first.folder)
    second = local(tmp_path / "up", zone, link=True)
    assert (second.status, second.folder) == ("new", zone / "2026-09-01.2")
    assert content(second) == b"two"


def test_linked_dump_of_known_content_is_known_by_its_listing_the_next_night(tmp_path: Path, zone: Path) -> None:
    up = tmp_path / "up"
    up.mkdir()
    (up / "a.csv").write_bytes(b"one")
    assert local(up, zone, link=True).status == "new"
    # Another time of change: the content is compared, and links that are made for that change the files' inodes once more.
    os.utime(up / "a.csv", (1, 1))
    assert local(up, zone, link=True).status == "unchanged"
    (note,) = zone.glob("*.landed.json")
    before = note.stat().st_mtime_ns
    assert local(up, zone, link=True).status == "unchanged"
    assert note.stat().st_mtime_ns == before, "landed and compared again"


def test_link_to_a_folder_is_no_dump_file_and_a_pipe_is_reported(tmp_path: Path, zone: Path) -> None:
    folder = tmp_path / "up" / "2026-09-01"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("one")
    (tmp_path / "up" / "latest").symlink_to("2026-09-01")
    assert local(tmp_path / "up", zone).folder == zone / "2026-09-01"
    os.mkfifo(folder / "pipe.csv")
    assert "pipe.csv: is not a regular file" in str(local(tmp_path / "up", zone).problem)


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """Yield a folder below which file rights count, also where tests run as root."""
    with TemporaryDirectory() as name:
        os.chmod(name, 0o755)  # noqa: PTH101, S103 - another user looks into it
        user = os.geteuid()
        if user == 0:
            os.chown(name, 65534, -1)
            os.seteuid(65534)
        yield Path(name)
        os.seteuid(user)


def test_folder_that_may_not_be_read_is_reported_as_such(as_nobody: Path) -> None:
    newest = as_nobody / "up" / "2026-10-01"
    for folder in (as_nobody / "up" / "2026-09-01", newest):
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text("one")
    for place in (newest, as_nobody / "up"):
        place.chmod(0)
        told = local(as_nobody / "up", as_nobody / "zone")
        place.chmod(0o700)
        assert told.status == "missing"
        assert f"{place}: cannot be read (Permission denied)" in str(told.problem)
    (newest / "a.csv").chmod(0)
    assert "a.csv: cannot be read (Permission denied)" in str(local(as_nobody / "up", as_nobody / "zone").problem)
    (newest / "a.csv").chmod(0o600)
    assert local(as_nobody / "up", as_nobody / "zone").folder == as_nobody / "zone" / "2026-10-01"


def test_landing_zone_that_may_not_be_written_is_reported(as_nobody: Path) -> None:
    (as_nobody / "up" / "2026-09-01").mkdir(parents=True)
    (as_nobody / "up" / "2026-09-01" / "a.csv").write_text("one")
    (as_nobody / "landing").mkdir(mode=0o500)
    told = local(as_nobody / "up", as_nobody / "landing" / "store_a")
    assert told.status == "missing"
    assert "Permission denied" in str(told.problem)


# --- checksums ---


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv.sha256", "{sha256}\n"),
        ("a.csv.md5", "{md5}  a.csv\n"),
        ("a.csv.sha512.txt", "{sha512}\n"),
        ("SHA256SUMS", "SHA256 (a.csv) = {sha256}\n"),
        ("SHA1SUMS.txt", "{sha1} *./a.csv\r\n"),
        ("sha256sum.txt", "{sha256}  /srv/out/a.csv\n"),
        ("checksums.sha256", "{sha256}  a.csv\n"),
        ("discogs_20260901_CHECKSUM.txt", "{sha256} a.csv\n"),
    ],
)
def test_every_kind_of_checksum_file_is_compared(tmp_path: Path, zone: Path, name: str, text: str) -> None:
    folder = tmp_path / "up" / "2026-09-01"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_bytes(b"right")
    hashes = {algorithm: hashlib.new(algorithm, b"right").hexdigest() for algorithm in ("md5", "sha1", "sha256", "sha512")}
    (folder / name).write_bytes(text.format(**hashes).encode())
    assert local(tmp_path / "up", zone).status == "new"
    (folder / "a.csv").write_bytes(b"wrong")
    refused = local(tmp_path / "up", zone)
    assert refused.status == "kept_last_good"
    assert "a.csv" in str(refused.problem)
    assert "published is" in str(refused.problem)


# --- what may be continued ---


def left_behind(upstream: Upstream, zone: Path, part: bytes) -> None:
    """Write the remains of a run that was killed while it fetched a.csv of the dump that upstream shows."""
    probe = zone.with_name("probe")
    fetched(upstream, probe)
    listing = json.loads(next(probe.glob("*.landed.json")).read_text())["listing"]
    (zone / ".incoming").mkdir(parents=True)
    (zone / ".incoming" / ".listing").write_text(listing)
    (zone / ".incoming" / "a.csv.part").write_bytes(part)
    upstream.sent.clear()


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


@pytest.mark.parametrize("told", ["bytes 1999-4999/5000", "bytes 2000-4999/6000", "bytes 2000-4999", "", "bytes */5000"])
def test_partial_answer_that_is_not_the_rest_of_the_file_is_never_joined_on(upstream: Upstream, zone: Path, told: str) -> None:
    body = os.urandom(5000)
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": body}, True
    left_behind(upstream, zone, body[:2000])
    upstream.tell_range = lambda _start, _size: told
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
        (False, b"o" * 2000, 3000),  # nothing tells that it is of this file
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


# --- faults, then the next run ---


def test_damaged_landed_dump_is_fetched_again_although_upstream_shows_nothing_new(upstream: Upstream, zone: Path, tmp_path: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    first = fetched(upstream, zone)
    assert first.folder is not None
    (first.folder / "a.csv").write_bytes(b"0ne")
    with pytest.raises(DumpError, match="has other content than landed"):
        stage_newest("store_a", zone, tmp_path / "staging")
    again = fetched(upstream, zone)
    assert (again.status, again.folder, content(again)) == ("new", zone / "2026-09-01.2", b"one")
    assert find_last_good(zone) == again.folder


def test_damaged_note_costs_one_fetch(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    fetched(upstream, zone)
    (zone / "2026-09-01.landed.json").write_bytes(b"\0" * 100)
    with pytest.raises(DumpError, match=r"2026-09-01\.landed\.json: cannot be read"):
        require_whole(zone / "2026-09-01")
    assert fetched(upstream, zone).status == "new"
    assert fetched(upstream, zone).status == "unchanged"


def test_damaged_broken_note_is_forgiven(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    result = fetched(upstream, zone)
    (zone / "2026-09-01.broken.json").write_bytes(b"{")
    forgive_broken(zone, "code")
    assert find_last_good(zone) == result.folder


def test_verdict_on_a_removed_dump_does_not_fall_on_the_next_of_its_name(
    upstream: Upstream, zone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    first = fetched(upstream, zone)
    assert first.folder is not None
    mark_broken(first.folder, "bad row")
    upstream.files = {"2026-10-01/a.csv": b"two"}
    fetched(upstream, zone)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(zone), "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            prune_landings(zone, keep=1)
    (zone / "2026-09-01.landed.json").unlink()  # killed behind this one: folder and verdict stay
    upstream.files = {"2026-09-01/a.csv": b"mended"}
    again = fetched(upstream, zone)
    assert (again.problem, content(again)) == (None, b"mended")
    assert (zone / "2026-09-01.broken.json").exists() is False


def test_dump_killed_before_its_folder_got_its_name_has_not_landed(upstream: Upstream, zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True

    def killed(folder: Path) -> None:
        if folder == zone / ".incoming":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(landing_zone, "flush", killed)
        patch.setattr(landing_zone, "_BOOT_ID", zone / "none")
        patch.setattr(landing_zone, "_write_text", lambda path, text: path.write_text(text))
        with pytest.raises(KeyboardInterrupt):
            fetched(upstream, zone)
    assert list_landed_dumps(zone) == []
    upstream.sent.clear()
    assert fetched(upstream, zone).folder == zone / "2026-09-01"
    assert upstream.fetches("2026-09-01/a.csv") == []  # all was there


def test_dump_that_does_not_fit_is_refused_before_it_is_fetched(upstream: Upstream, zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"n" * 3000}, True
    monkeypatch.setattr(landing_zone.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": 2999}))
    result = fetched(upstream, zone)
    assert "3,000 bytes more, 2,999 are free" in str(result.problem)
    assert upstream.fetches("2026-09-01/a.csv") == []


@pytest.mark.parametrize(("free", "fits"), [(999, False), (1000, True)])
def test_room_is_asked_for_only_what_is_not_here_yet(
    upstream: Upstream,
    zone: Path,
    monkeypatch: pytest.MonkeyPatch,
    free: int,
    fits: bool,  # noqa: FBT001
) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"n" * 3000, "2026-09-01/b.csv": b"m" * 500}, True
    left_behind(upstream, zone, b"n" * 2000)
    (zone / ".incoming" / "b.csv").write_bytes(b"m" * 500)
    monkeypatch.setattr(landing_zone.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": free}))
    result = fetched(upstream, zone)
    assert (result.status, result.problem is None) == (("new", True) if fits else ("missing", False))
    assert result.bytes_fetched == (1000 if fits else 0)
    assert fits or "needs 1,000 bytes more" in str(result.problem)


def test_dump_that_one_code_could_not_read_gets_another_chance_with_any_other(upstream: Upstream, zone: Path) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    landed = fetched(upstream, zone).folder
    assert landed is not None
    for other in ("a", "c"):
        mark_broken(landed, "no table", "b")
        forgive_broken(zone, "b")
        assert find_last_good(zone) is None
        forgive_broken(zone, other)
        assert find_last_good(zone) == landed
    mark_broken(landed, "too few rows", "b", limits={"least": 2.0})
    forgive_broken(zone, "b", {"least": 2.0})
    assert find_last_good(zone) is None
    forgive_broken(zone, "b", {"least": 1.0})
    assert find_last_good(zone) == landed


@pytest.mark.parametrize("size", [2, 4])
def test_landed_file_of_another_size_is_reported_with_both_sizes(upstream: Upstream, zone: Path, size: int) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"one"}, True
    landed = fetched(upstream, zone)
    assert landed.folder is not None
    require_whole(landed.folder)
    (landed.folder / "a.csv").write_bytes(b"x" * size)
    with pytest.raises(DumpError, match=f"has {size} bytes, 3 landed"):
        require_whole(landed.folder)
    (landed.folder / "a.csv").unlink()
    with pytest.raises(DumpError, match="landed and is gone"):
        require_whole(landed.folder)


def test_full_disk_ends_the_fetch_at_once_and_gives_the_room_back(upstream: Upstream, zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.files, upstream.entity_tags = {"2026-09-01/a.csv": b"n" * 3000}, True
    calls = []

    def full(*_: object) -> int:
        calls.append(1)
        (zone / ".incoming" / "a.csv.part").write_bytes(b"n" * 1000)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(landing_zone, "download", full)
        assert "No space left" in str(fetched(upstream, zone).problem)
    assert (len(calls), (zone / ".incoming").exists()) == (1, False)
    assert content(fetched(upstream, zone)) == b"n" * 3000
