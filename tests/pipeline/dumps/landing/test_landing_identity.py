"""When two deliveries are one, and when they only look alike: equal names and sizes under every kind of source."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.landed_dumps import find_last_good, list_landed_dumps, require_whole
from pipeline.dumps.landing.landing_zone import land
from pipeline.dumps.landing.sources import Source
from tests.pipeline.dumps.landing.landed_dumps import MONDAY, TUESDAY, content, fetched, local, sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .http_upstream import Upstream


pytestmark = pytest.mark.usefixtures("quick_retries")


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
    reported: list[str] = []
    first = land(Source("store_a", upstream.address), zone, reported.append)
    again = fetched(upstream, zone)
    assert (again.status, again.folder, again.bytes_fetched) == ("unchanged", first.folder, 3)
    assert any("a.csv" in line and "fetched each night" in line for line in reported)
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


@pytest.mark.parametrize("dated", [True, False])
def test_delivery_that_upstream_puts_back_is_used(upstream: Upstream, zone: Path, dated: bool) -> None:  # noqa: FBT001
    name = "2026-09-01/a.csv" if dated else "a.csv"
    for modified, file in ((MONDAY, b"one"), (TUESDAY, b"two"), (MONDAY, b"one")):
        upstream.files, upstream.modified = {name: file}, modified
        landing = fetched(upstream, zone)
        assert (landing.status, landing.folder, content(landing)) == ("new", find_last_good(zone), file)
    assert fetched(upstream, zone).bytes_fetched == 0


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
    landing = fetched(upstream, zone)
    assert (landing.status, "503" in str(landing.problem)) == ("missing", True)  # not the older one, as if it were the newest
    upstream.broken_folders = set()
    first = fetched(upstream, zone)
    assert content(first) == b"two"
    down = land(Source("store_a", "http://127.0.0.1:1/"), zone)
    assert (down.status, down.folder) == ("kept_last_good", first.folder)
    assert "Cannot connect" in str(down.problem)
    gone = land(Source("store_a", f"{upstream.address}gone/"), zone)
    assert "nothing there" in str(gone.problem)


# --- local folders ---


def test_local_file_changed_in_place_with_its_time_set_back_lands_again(tmp_path: Path, zone: Path) -> None:
    file = tmp_path / "up" / "2026-09-01" / "a.csv"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"one")
    times = file.stat()
    local(tmp_path / "up", zone)
    file.write_bytes(b"two")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = local(tmp_path / "up", zone)
    assert (second.status, content(second)) == ("new", b"two")


def test_link_that_leads_to_another_file_of_the_same_size_lands_again(tmp_path: Path, zone: Path) -> None:
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
def test_linked_file_changed_in_place_is_reported_and_lands_again(tmp_path: Path, zone: Path, keeps_time: bool) -> None:  # noqa: FBT001
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
    with pytest.raises(DumpError, match=r"a\.csv: has changed since it landed"):
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
        landing = local(as_nobody / "up", as_nobody / "zone")
        place.chmod(0o700)
        assert landing.status == "missing"
        assert f"{place}: cannot be read (Permission denied)" in str(landing.problem)
    (newest / "a.csv").chmod(0)
    assert "a.csv: cannot be read (Permission denied)" in str(local(as_nobody / "up", as_nobody / "zone").problem)
    (newest / "a.csv").chmod(0o600)
    assert local(as_nobody / "up", as_nobody / "zone").folder == as_nobody / "zone" / "2026-10-01"


def test_landing_zone_that_may_not_be_written_is_reported(as_nobody: Path) -> None:
    (as_nobody / "up" / "2026-09-01").mkdir(parents=True)
    (as_nobody / "up" / "2026-09-01" / "a.csv").write_text("one")
    (as_nobody / "landing").mkdir(mode=0o500)
    landing = local(as_nobody / "up", as_nobody / "landing" / "store_a")
    assert landing.status == "missing"
    assert "Permission denied" in str(landing.problem)


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
