"""Tests of landing over real file systems: local folders, an HTTP server that breaks off, an S3 server."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar

import pytest

from pipeline.dumps.errors import UnblamedError
from pipeline.dumps.intake.newest_dump import stage_newest
from pipeline.dumps.landing import landing_zone
from pipeline.dumps.landing.landed_dumps import find_last_good, forgive_broken, list_landed_dumps, mark_broken, prune_landings
from pipeline.dumps.landing.landing_zone import find_unlanded, land
from pipeline.dumps.landing.sources import Source
from tests.unreadable_folders import refuse_listing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def deliver(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def source(location: object, **more: object) -> Source:
    return Source("store_a", str(location), **more)  # type: ignore[arg-type]


def test_the_newest_dated_folder_is_landed_whole_and_unchanged_afterwards(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "2026-08-01", tracks__ndjson="old")
    deliver(tmp_path / "up" / "2026-09-01", tracks__ndjson="new", releases__ndjson="r")
    result = land(source(tmp_path / "up"), tmp_path / "zone")
    assert (result.status, result.problem) == ("new", None)
    assert result.folder == tmp_path / "zone" / "2026-09-01"
    assert sorted(file.name for file in result.folder.iterdir()) == ["releases.ndjson", "tracks.ndjson"]
    (tmp_path / "up" / "2026-09-01" / "tracks.ndjson").write_text("overwritten upstream")
    assert (result.folder / "tracks.ndjson").read_text() == "new"


@pytest.mark.parametrize("stray", ["README", "LATEST", "tracks.ndjson", "notes-2026-12-24.txt", "SHA256SUMS"])
def test_stray_file_beside_dated_folders_is_named_and_not_read(tmp_path: Path, stray: str) -> None:
    deliver(tmp_path / "up" / "2026-08-01", tracks__ndjson="old")
    deliver(tmp_path / "up" / "2026-09-01", tracks__ndjson="new")
    (tmp_path / "up" / stray).write_text("stray")
    for status in ("new", "unchanged"):
        said: list[str] = []
        result = land(source(tmp_path / "up"), tmp_path / "zone", said.append)
        assert (result.status, result.problem, result.folder) == (status, None, tmp_path / "zone" / "2026-09-01")
        assert [file.name for file in result.folder.iterdir()] == ["tracks.ndjson"]
        assert (result.folder / "tracks.ndjson").read_text() == "new"
        [warning] = [line for line in said if line.startswith("warning: store_a: ")]
        assert f"are not read: {stray};" in warning


def test_dump_dated_far_in_the_future_is_named_every_night(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "2026-08-01", tracks__ndjson="right")
    deliver(tmp_path / "up" / "2062-08-02", tracks__ndjson="a slip")
    for status in ("new", "unchanged"):
        said: list[str] = []
        result = land(source(tmp_path / "up"), tmp_path / "zone", said.append)
        assert (result.status, result.folder) == (status, tmp_path / "zone" / "2026-08-01")
        assert any("2062-08-02/tracks.ndjson" in line and "far in the future" in line for line in said)


def test_several_folders_of_the_newest_date_are_landed_together(tmp_path: Path) -> None:
    for folder in ("itunes20261001", "match20261001", "itunes20261008", "match20261008"):
        (tmp_path / "up" / folder).mkdir(parents=True)
        (tmp_path / "up" / folder / "song").write_text(folder)
    folder = land(source(tmp_path / "up"), tmp_path / "zone").folder
    assert folder == tmp_path / "zone" / "2026-10-08"
    assert sorted(path.read_text() for path in folder.rglob("song")) == ["itunes20261008", "match20261008"]


def test_file_beside_dated_folders_counts_when_the_sources_say_so(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "2026-08-01", tracks__ndjson="old")
    deliver(tmp_path / "up", LATEST="2026-08-01")
    said: list[str] = []
    assert land(source(tmp_path / "up", dated=True), tmp_path / "zone", said.append).folder == tmp_path / "zone" / "2026-08-01"
    assert not any("warning" in line for line in said)
    flat = land(source(tmp_path / "up", dated=False), tmp_path / "flat").folder
    assert flat is not None
    assert (flat / "LATEST").exists()


def test_notes_of_an_operating_system_are_no_part_of_a_dump(tmp_path: Path) -> None:
    day = tmp_path / "up" / "2026-08-01"
    deliver(day, tracks__ndjson="{}", __DS_Store="x")
    deliver(tmp_path / "up", __DS_Store="x")
    deliver(day / ".cache", more__ndjson="x")
    (day / "._tracks.ndjson").write_text("x")
    result = land(source(tmp_path / "up"), tmp_path / "zone")
    assert result.folder == tmp_path / "zone" / "2026-08-01"
    assert [file.name for file in result.folder.iterdir()] == ["tracks.ndjson"]


def test_an_unchanged_dump_is_not_fetched_again(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "2026-09-01", a__csv="1")
    first = land(source(tmp_path / "up"), tmp_path / "zone")
    again = land(source(tmp_path / "up"), tmp_path / "zone")
    assert (again.status, again.folder, again.bytes_fetched) == ("unchanged", first.folder, 0)


def test_a_dump_replaced_under_the_same_date_lands_beside_the_first(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "2026-09-01", a__csv="1")
    land(source(tmp_path / "up"), tmp_path / "zone")
    deliver(tmp_path / "up" / "2026-09-01", a__csv="22")
    second = land(source(tmp_path / "up"), tmp_path / "zone")
    assert second.folder == tmp_path / "zone" / "2026-09-01.2"
    assert (tmp_path / "zone" / "2026-09-01" / "a.csv").read_text() == "1"
    assert find_last_good(tmp_path / "zone") == second.folder


def test_withdrawn_dump_stays_in_use_until_the_operator_removes_it(tmp_path: Path) -> None:
    up, zone = source(tmp_path / "up"), tmp_path / "zone"
    deliver(tmp_path / "up" / "2026-08-01", a__csv="1")
    land(up, zone)
    deliver(tmp_path / "up" / "2026-09-01", a__csv="2")
    later = land(up, zone).folder
    assert later is not None
    shutil.rmtree(tmp_path / "up" / "2026-09-01")
    kept = land(up, zone)
    assert (kept.status, kept.folder) == ("kept_last_good", later)
    assert kept.problem is not None
    assert kept.problem.endswith(f"stays in use; if 2026-09-01 was withdrawn, remove {later}")
    assert find_unlanded(up, zone) is None
    shutil.rmtree(later)
    landing = land(up, zone)
    assert (landing.status, landing.folder) == ("unchanged", zone / "2026-08-01") == ("unchanged", find_last_good(zone))


def test_older_dump_that_never_landed_is_not_fetched(tmp_path: Path) -> None:
    up, zone = source(tmp_path / "up"), tmp_path / "zone"
    deliver(tmp_path / "up" / "2026-09-01", a__csv="2")
    land(up, zone)
    (tmp_path / "up" / "2026-09-01").rename(tmp_path / "up" / "2026-08-01")
    assert land(up, zone).status == "kept_last_good"
    assert [folder.name for folder in list_landed_dumps(zone)] == ["2026-09-01"]


def test_undated_file_that_is_put_back_with_its_old_time_is_used(tmp_path: Path) -> None:
    up, zone = source(tmp_path / "up"), tmp_path / "zone"
    for text, day in (("1", 1), ("2", 5), ("1", 1)):
        deliver(tmp_path / "up", a__csv=text)
        os.utime(tmp_path / "up" / "a.csv", (day * 86_400, day * 86_400))
        landing = land(up, zone)
        assert (landing.status, landing.folder) == ("new", find_last_good(zone))
    assert [folder.name for folder in list_landed_dumps(zone)] == ["1970-01-02", "1970-01-06", "1970-01-06.2"]
    assert land(up, zone).status == "unchanged"


def test_flat_folder_with_dates_in_file_names_lands_the_newest_month_only(tmp_path: Path) -> None:
    deliver(tmp_path / "up", discogs_20260701_releases__xml="7", discogs_20260801_releases__xml="8", README="x")
    result = land(source(tmp_path / "up"), tmp_path / "zone")
    assert result.folder is not None
    assert result.folder.name == "2026-08-01"
    assert sorted(file.name for file in result.folder.iterdir()) == ["README", "discogs_20260801_releases.xml"]


def test_globs_choose_files(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "20260905-002519", mbdump__tar="x", noise__bin="y")
    result = land(source(tmp_path / "up", files=("mbdump*",)), tmp_path / "zone")
    assert result.files == ["mbdump.tar"]
    assert result.folder is not None
    assert result.folder.name == "2026-09-05"


def test_missing_upstream_without_an_earlier_dump_is_reported_with_the_reason(tmp_path: Path) -> None:
    result = land(source(tmp_path / "nowhere"), tmp_path / "zone")
    assert (result.status, result.folder) == ("missing", None)
    assert str(tmp_path / "nowhere") in str(result.problem)


def test_missing_upstream_keeps_the_last_good_dump(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "2026-09-01", a__csv="1")
    first = land(source(tmp_path / "up"), tmp_path / "zone")
    result = land(source(tmp_path / "gone"), tmp_path / "zone")
    assert (result.status, result.folder) == ("kept_last_good", first.folder)
    assert result.problem


@pytest.mark.parametrize(
    ("listing", "line"),
    [("MD5SUMS", "{md5} *a.csv"), ("SHA256SUMS", "{sha256} *a.csv"), ("discogs_20260901_CHECKSUM.txt", "{sha256} a.csv")],
)
def test_published_checksums_are_compared_in_every_spelling(tmp_path: Path, listing: str, line: str) -> None:
    hashes = {name: hashlib.new(name, b"right").hexdigest() for name in ("md5", "sha256")}
    folder = tmp_path / "up" / "2026-09-01"
    deliver(folder, a__csv="right")
    (folder / listing).write_text(line.format(**hashes) + "\n")
    assert land(source(tmp_path / "up"), tmp_path / "zone").status == "new"
    (folder / "a.csv").write_text("wrong")
    broken = land(source(tmp_path / "up"), tmp_path / "zone2")
    assert (broken.status, broken.folder) == ("missing", None)
    assert "a.csv" in str(broken.problem)
    kept = land(source(tmp_path / "up"), tmp_path / "zone")
    assert kept.status == "kept_last_good"
    assert not (tmp_path / "zone" / ".incoming").exists()


@pytest.mark.parametrize("lists", [("A_CHECKSUM.txt", "SHA256SUMS"), ("SHA256SUMS", "a.csv.sha256"), ("SHA256SUMS", "SHA256SUMS")])
@pytest.mark.parametrize("contents", [("right", "wrong"), ("wrong", "right")])
def test_checksums_that_contradict_each_other_are_a_problem_that_names_both(
    lists: tuple[str, str], contents: tuple[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "up" / "2026-09-01"
    deliver(folder, a__csv="right")
    for name, content in zip(lists, contents, strict=True):
        with (folder / name).open("a") as file:
            file.write(f"{hashlib.sha256(content.encode()).hexdigest()}  a.csv\n")
    refused = land(source(tmp_path / "up"), tmp_path / "zone")
    assert (refused.status, refused.folder) == ("missing", None)
    assert "a.csv: published are two sha256 hashes" in str(refused.problem)
    assert f"(in {lists[1]})" in str(refused.problem)
    (folder / lists[1]).write_text(f"{hashlib.sha256(b'right').hexdigest()}  a.csv\n")
    (folder / lists[0]).write_text(f"{hashlib.sha256(b'right').hexdigest()}  a.csv\n")
    assert land(source(tmp_path / "up"), tmp_path / "zone").status == "new"


def test_a_dump_marked_broken_is_not_used_until_it_is_replaced(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "2026-08-01", a__csv="1")
    first = land(source(tmp_path / "up"), tmp_path / "zone")
    deliver(tmp_path / "up" / "2026-09-01", a__csv="2")
    second = land(source(tmp_path / "up"), tmp_path / "zone")
    assert second.folder is not None
    mark_broken(second.folder, "bad tar member")
    again = land(source(tmp_path / "up"), tmp_path / "zone")
    assert (again.status, again.folder) == ("kept_last_good", first.folder)
    deliver(tmp_path / "up" / "2026-09-01", a__csv="repaired")
    assert land(source(tmp_path / "up"), tmp_path / "zone").status == "new"


def test_folder_that_a_killed_run_renamed_but_did_not_note_lands_again(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "2026-09-01", a__csv="1")
    deliver(tmp_path / "zone" / "2026-09-01", half="x")
    result = land(source(tmp_path / "up"), tmp_path / "zone")
    assert result.folder == tmp_path / "zone" / "2026-09-01"
    assert [file.name for file in result.folder.iterdir()] == ["a.csv"]


def test_linked_files_share_their_bytes_with_the_delivery(tmp_path: Path) -> None:
    deliver(tmp_path / "up" / "2026-09-01", a__csv="1")
    result = land(source(tmp_path / "up", link=True), tmp_path / "zone")
    assert result.folder is not None
    assert (result.folder / "a.csv").stat().st_ino == (tmp_path / "up" / "2026-09-01" / "a.csv").stat().st_ino


def test_pruning_keeps_the_newest_and_the_last_good(tmp_path: Path) -> None:
    for month in ("06", "07", "08"):
        deliver(tmp_path / "up" / f"2026-{month}-01", a__csv=month)
        land(source(tmp_path / "up"), tmp_path / "zone")
    mark_broken(tmp_path / "zone" / "2026-08-01", "bad")
    mark_broken(tmp_path / "zone" / "2026-07-01", "bad")
    prune_landings(tmp_path / "zone", keep=1)
    assert [path.name for path in list_landed_dumps(tmp_path / "zone")] == ["2026-06-01", "2026-08-01"]
    assert not (tmp_path / "zone" / "2026-07-01").exists()


class BreakingServer(BaseHTTPRequestHandler):
    """Serves one file with ranges; breaks the connection off after `give` bytes until it has done so `breaks` times."""

    content = bytes(range(256)) * 40_000
    breaks = 0
    give = 3_000_000
    starts: ClassVar[list[int]] = []

    def do_HEAD(self) -> None:
        self._head(200, len(self.content))

    def do_GET(self) -> None:
        if self.path.endswith("/"):
            page = b'<a href="dump.bin">dump.bin</a>'
            self._head(200, len(page), "text/html")
            self.wfile.write(page)
            return
        start, end = 0, len(self.content)
        wanted = self.headers.get("Range")
        if wanted:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1 if last else end, end)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(self.content)}")
            self.send_header("Content-Length", str(end - start))
            self.end_headers()
        else:
            self._head(200, end)
        type(self).starts.append(start)
        body = self.content[start:end]
        if type(self).breaks > 0 and end - start > 1:
            type(self).breaks -= 1
            self.wfile.write(body[: self.give])
            self.connection.close()
            return
        self.wfile.write(body)

    def _head(self, status: int, length: int, kind: str = "application/octet-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"v1"')
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Write no log, to keep tests quiet."""


@pytest.fixture
def breaking_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(landing_zone, "FIRST_PAUSE_SECONDS", 0.01)
    BreakingServer.starts.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), BreakingServer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/2026-09-01/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_broken_download_is_tried_again_until_it_is_whole(tmp_path: Path, breaking_server: str) -> None:
    BreakingServer.breaks = 2
    result = land(source(breaking_server, dated=False), tmp_path / "zone")
    assert result.problem is None
    assert result.folder is not None
    assert (result.folder / "dump.bin").read_bytes() == BreakingServer.content


def test_a_download_that_a_killed_run_left_is_continued_not_begun_again(tmp_path: Path, breaking_server: str) -> None:
    BreakingServer.breaks = 0
    land(source(breaking_server, dated=False), tmp_path / "zone")
    [note_file] = (tmp_path / "zone").glob("*.landed.json")
    note = json.loads(note_file.read_text())
    incoming = tmp_path / "zone2" / ".incoming"
    incoming.mkdir(parents=True)
    (incoming / ".listing").write_text(note["listing"])
    (incoming / "dump.bin.part").write_bytes(BreakingServer.content[:9_000_000])
    BreakingServer.starts.clear()
    result = land(source(breaking_server, dated=False), tmp_path / "zone2")
    assert result.bytes_fetched == len(BreakingServer.content) - 9_000_000
    assert min(start for start in BreakingServer.starts if start > 0) >= 9_000_000
    assert result.folder is not None
    assert (result.folder / "dump.bin").read_bytes() == BreakingServer.content


def test_a_download_that_never_comes_whole_keeps_the_last_good_dump(
    tmp_path: Path, breaking_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BreakingServer, "give", 1_000_000)  # each attempt continues where the previous one broke off
    deliver(tmp_path / "up" / "2026-08-01", a__csv="1")
    first = land(source(tmp_path / "up"), tmp_path / "zone")
    BreakingServer.breaks = 1_000_000
    result = land(source(breaking_server, dated=False), tmp_path / "zone")
    BreakingServer.breaks = 0
    assert (result.status, result.folder) == ("kept_last_good", first.folder)
    assert "127.0.0.1" in str(result.problem)


def test_dumps_come_from_s3(tmp_path: Path) -> None:
    pytest.importorskip("s3fs")
    import boto3  # noqa: PLC0415 - comes with the optional S3 file system
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        client = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id="k", aws_secret_access_key="s", region_name="us-east-1")
        client.create_bucket(Bucket="dumps")
        client.put_object(Bucket="dumps", Key="store_a/2026-09-01/tracks.ndjson", Body=b'{"id":1}\n')
        options = {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": endpoint, "region_name": "us-east-1"}}
        result = land(source("s3://dumps/store_a", options=options), tmp_path / "zone")
        assert result.problem is None
        assert result.folder == tmp_path / "zone" / "2026-09-01"
        assert (result.folder / "tracks.ndjson").read_bytes() == b'{"id":1}\n'
        assert land(source("s3://dumps/store_a", options=options), tmp_path / "zone").status == "unchanged"
        client.put_object(Bucket="dumps", Key="store_a/2026-09-01/tracks.ndjson", Body=b'{"id":2}\n')
        second = land(source("s3://dumps/store_a", options=options), tmp_path / "zone")
        assert (second.status, second.folder) == ("new", tmp_path / "zone" / "2026-09-01.2")
        upload = client.create_multipart_upload(Bucket="dumps", Key="store_a/2026-09-01/tracks.ndjson")["UploadId"]
        place = {"Bucket": "dumps", "Key": "store_a/2026-09-01/tracks.ndjson", "UploadId": upload}
        part = client.upload_part(**place, PartNumber=1, Body=b'{"id":3}\n')
        client.complete_multipart_upload(**place, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
        third = land(source("s3://dumps/store_a", options=options), tmp_path / "zone")
        assert third.folder is not None
        assert (third.folder / "tracks.ndjson").read_bytes() == b'{"id":3}\n'
    finally:
        server.stop()


def test_unreadable_zone_is_a_problem_and_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zone = tmp_path / "zone"
    for date in ("2026-08-01", "2026-09-01"):
        deliver(tmp_path / "up" / date, tracks__ndjson=date)
        land(source(tmp_path / "up"), zone)
    mark_broken(zone / "2026-09-01", "no good", "code")
    before = sorted(zone.rglob("*"))
    deliver(tmp_path / "up" / "2026-10-01", tracks__ndjson="new")
    with monkeypatch.context() as unreadable:
        refuse_listing(unreadable, zone)
        result = land(source(tmp_path / "up"), zone)
        assert (result.status, result.folder, result.bytes_fetched) == ("missing", None, 0)
        assert result.problem is not None
        assert f"{zone}: cannot be read (Permission denied): give the user that builds the right to read it" in result.problem
        for operation in (lambda: prune_landings(zone, 1), lambda: forgive_broken(zone, "other code"), lambda: list_landed_dumps(zone)):
            with pytest.raises(UnblamedError, match=r"cannot be read \(Permission denied\)"):
                operation()
    assert sorted(zone.rglob("*")) == before
    assert land(source(tmp_path / "up"), zone).status == "new"


def test_dump_whose_folder_cannot_be_read_is_tried_again_and_not_marked_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zone, staged = tmp_path / "zone", tmp_path / "staged"
    deliver(tmp_path / "up" / "2026-08-01" / "part", tracks__ndjson="")
    land(source(tmp_path / "up"), zone)
    with monkeypatch.context() as unreadable:
        refuse_listing(unreadable, zone / "2026-08-01" / "part")
        with pytest.raises(UnblamedError, match=r"part: store_a could not be staged .*Permission denied.* file rights"):
            stage_newest("store_a", zone, staged)
    assert find_last_good(zone) == zone / "2026-08-01"
