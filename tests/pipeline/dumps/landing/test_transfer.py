"""Tests of transfers of one file over HTTP and other file systems: requested ranges, reuse of an earlier part, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import fsspec
import pytest

from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.transfer import download
from pipeline.dumps.landing.upstream import RemoteFile
from tests.pipeline.dumps.landing.http_upstream import Upstream, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY = bytes(range(250)) * 20
MD5 = {"md5": "0" * 32}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with serving(Upstream(files={"a.csv": BODY, "a.csv.gz": BODY, "B.CSV.GZ": BODY, "empty": b""}, entity_tags=True)) as served:
        yield served


def remote(upstream: Upstream, name: str = "a.csv", *, size: int | None = len(BODY), tag: bool = True, **more: Any) -> RemoteFile:  # noqa: ANN401
    """Return the file as a listing shows it; with `tag` it has an entity tag."""
    entity_tag = upstream.tag(name) if tag else None
    validators = (f"ETag={entity_tag}",) if tag else ()
    return RemoteFile(f"{upstream.address}{name}", name, size, validators, entity_tag=entity_tag, **more)


def fetch(upstream: Upstream, file: RemoteFile, partial: Path, left: bytes | None = None) -> int:
    if left is not None:
        partial.write_bytes(left)
    file_system, _ = fsspec.core.url_to_fs(upstream.address)
    return download(file_system, file, partial)


@pytest.mark.parametrize(
    ("left", "transferred", "requests"),
    [
        (None, 5000, [(None, 200)]),
        (b"", 5000, [(None, 200)]),
        (BODY[:1], 4999, [("bytes=1-", 206)]),
        (BODY[:2000], 3000, [("bytes=2000-", 206)]),
        (BODY[:4999], 1, [("bytes=4999-", 206)]),
        (BODY, 0, []),
        (BODY + b"x", 5000, [(None, 200)]),  # longer than the file: of another
    ],
)
def test_transfer_continues_after_the_part_that_is_here(
    upstream: Upstream, tmp_path: Path, left: bytes | None, transferred: int, requests: list[tuple[str | None, int]]
) -> None:
    assert fetch(upstream, remote(upstream), tmp_path / "part", left) == transferred
    assert (tmp_path / "part").read_bytes() == BODY
    assert upstream.fetches("a.csv") == requests


@pytest.mark.parametrize(
    ("tag", "more", "requests"),
    [
        (True, {}, [("bytes=2000-", 206)]),
        (False, {}, [(None, 200)]),  # nothing shows that the part is of this file
        (False, {"checksums": MD5}, [("bytes=2000-", 206)]),  # the checksum will tell
        (False, {"lines": "hash"}, [(None, 200)]),  # changes are visible, but no request can ask for them
        (True, {"size": None}, [("bytes=2000-", 206)]),
    ],
)
def test_range_is_asked_for_where_something_proves_the_part(
    upstream: Upstream,
    tmp_path: Path,
    tag: bool,  # noqa: FBT001
    more: dict[str, Any],
    requests: list[tuple[str | None, int]],
) -> None:
    fetch(upstream, remote(upstream, tag=tag, **more), tmp_path / "part", BODY[:2000])
    assert (tmp_path / "part").read_bytes() == BODY
    assert upstream.fetches("a.csv") == requests


@pytest.mark.parametrize("size", [len(BODY), None])
def test_server_without_ranges_sends_the_file_from_its_beginning(upstream: Upstream, tmp_path: Path, size: int | None) -> None:
    upstream.ranges = False
    assert fetch(upstream, remote(upstream, size=size), tmp_path / "part", b"o" * 4000) == 5000
    assert (tmp_path / "part").read_bytes() == BODY
    assert upstream.fetches("a.csv") == [("bytes=4000-", 200)]


def test_part_of_a_file_that_was_replaced_is_not_kept(upstream: Upstream, tmp_path: Path) -> None:
    file = remote(upstream)
    upstream.files["a.csv"] = b"n" * 5000
    assert fetch(upstream, file, tmp_path / "part", BODY[:2000]) == 5000
    assert (tmp_path / "part").read_bytes() == b"n" * 5000


def test_part_longer_than_a_file_of_unknown_size_is_emptied_for_the_next_attempt(upstream: Upstream, tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"^a\.csv: the server has no bytes from 5,000 on; the next attempt starts from the beginning$"):
        fetch(upstream, remote(upstream, size=None), tmp_path / "part", BODY)
    assert (tmp_path / "part").read_bytes() == b""
    assert fetch(upstream, remote(upstream, size=None), tmp_path / "part") == 5000


def test_unit_of_a_range_is_read_in_any_case(upstream: Upstream, tmp_path: Path) -> None:
    upstream.tell_range = lambda start, size: f"Bytes {start}-{size - 1}/{size}"
    assert fetch(upstream, remote(upstream), tmp_path / "part", BODY[:2000]) == 3000
    assert (tmp_path / "part").read_bytes() == BODY


@pytest.mark.parametrize("header", ["bytes 1999-4999/5000", "bytes 2000-4999/6000", ""])
def test_answer_with_another_range_is_refused_and_empties_the_part(upstream: Upstream, tmp_path: Path, header: str) -> None:
    upstream.tell_range = lambda _start, _size: header
    with pytest.raises(DumpError, match=rf"a\.csv: the request asked for bytes from 2,000 on, the answer has '{header}'"):
        fetch(upstream, remote(upstream), tmp_path / "part", BODY[:2000])
    assert (tmp_path / "part").read_bytes() == b""


@pytest.mark.parametrize(
    ("name", "encoding", "is_taken"),
    [
        ("a.csv", "identity", True),
        ("a.csv", "Identity", True),
        ("a.csv", "gzip", False),
        ("a.csv", "br", False),
        ("a.csv.gz", "gzip", True),
        ("a.csv.gz", "x-gzip", True),
        ("B.CSV.GZ", "gzip", True),
    ],
)
def test_encoded_file_is_taken_only_under_a_name_of_packed_files(
    upstream: Upstream,
    tmp_path: Path,
    name: str,
    encoding: str,
    is_taken: bool,  # noqa: FBT001
) -> None:
    upstream.encoding = encoding
    if is_taken:
        assert fetch(upstream, remote(upstream, name), tmp_path / "part") == 5000
        assert (tmp_path / "part").read_bytes() == BODY
    else:
        with pytest.raises(DumpError, match=f"the server encodes it as {encoding}"):
            fetch(upstream, remote(upstream, name), tmp_path / "part")


@pytest.mark.parametrize(
    ("size", "message"), [(4999, "the server sends more than the 4,999 bytes"), (5001, "5,000 bytes came, 5,001 were")]
)
def test_file_of_another_size_than_announced_is_refused(upstream: Upstream, tmp_path: Path, size: int, message: str) -> None:
    with pytest.raises(DumpError, match=message):
        fetch(upstream, remote(upstream, size=size), tmp_path / "part")


def test_empty_file_is_transferred(upstream: Upstream, tmp_path: Path) -> None:
    assert fetch(upstream, remote(upstream, "empty", size=0), tmp_path / "part") == 0
    assert (tmp_path / "part").read_bytes() == b""


def test_file_that_is_gone_is_not_found(upstream: Upstream, tmp_path: Path) -> None:
    file = remote(upstream)
    del upstream.files["a.csv"]
    with pytest.raises(FileNotFoundError, match=r"a\.csv"):
        fetch(upstream, file, tmp_path / "part")


def test_other_file_system_continues_and_counts_only_sent_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(BODY)
    file = RemoteFile(str(tmp_path / "a.csv"), "a.csv", len(BODY), ("tag",))
    for left, transferred in ((b"", 5000), (BODY[:2000], 3000), (BODY, 0)):
        (tmp_path / "part").write_bytes(left)
        assert download(fsspec.filesystem("file"), file, tmp_path / "part") == transferred
        assert (tmp_path / "part").read_bytes() == BODY
