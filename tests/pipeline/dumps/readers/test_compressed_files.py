"""Tests of delivered files as byte streams: every compression, and every kind of truncation or damage."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from typing import TYPE_CHECKING

import pytest
import zstandard

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.compressed_files import DumpFile, read_blocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONTENT = b"".join(b"line %d of a dump\n" % number for number in range(50_000))
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".xml": bytes,
    ".xml.gz": gzip.compress,
    ".json.bz2": bz2.compress,
    ".ndjson.zst": zstandard.compress,
    ".jsonl.xz": lzma.compress,
}
COMPRESSED = [suffix for suffix in PACK if suffix != ".xml"]


@pytest.mark.parametrize("suffix", PACK)
def test_blocks_give_back_the_content_in_blocks_of_the_size_asked_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(PACK[suffix](CONTENT))
    got = list(read_blocks(path, 100_000))
    assert b"".join(got) == CONTENT
    assert {len(block) for block in got[:-1]} == {100_000}


@pytest.mark.parametrize("named", PACK)
@pytest.mark.parametrize("packed", PACK)
def test_packing_is_detected_from_the_content_under_any_name(tmp_path: Path, packed: str, named: str) -> None:
    path = tmp_path / f"dump{named}"
    path.write_bytes(PACK[packed](CONTENT[:20_000]))
    assert b"".join(read_blocks(path)) == CONTENT[:20_000]
    characters = "ö".encode() * 5000
    path.write_bytes(PACK[packed](b"x" + characters))
    assert b"".join(read_blocks(path)) == b"x" + characters, "text is text though a character is cut where looking ends"


def test_an_archive_that_was_unpacked_on_the_way_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dump.tar.gz"
    with tarfile.open(path, "w") as archive:
        archive.add(__file__, "mbdump/recording")
    with DumpFile(path) as file, tarfile.open(fileobj=file, mode="r|") as archive:
        assert archive.getnames() == ["mbdump/recording"]


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_several_members_in_one_file_are_read_as_one(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(PACK[suffix](CONTENT) + PACK[suffix](b"second member\n"))
    assert b"".join(read_blocks(path)) == CONTENT + b"second member\n"


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("place", [0, 3])
def test_a_member_whose_beginning_is_damaged_is_not_the_end(tmp_path: Path, suffix: str, place: int) -> None:
    first, second = PACK[suffix](CONTENT), bytearray(PACK[suffix](b"second member\n"))
    second[place] ^= 0x55
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(first + second + first)
    with pytest.raises(DumpError, match=rf"dump{suffix}: .* after byte \d+ "):
        list(read_blocks(path, 10_000))


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_zeros_that_fill_up_a_block_are_no_damage(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(PACK[suffix](CONTENT) + bytes(300_000))
    assert b"".join(read_blocks(path)) == CONTENT


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("keep", [0.999, 0.5, 0.1])
def test_a_cut_off_file_names_file_and_place(tmp_path: Path, suffix: str, keep: float) -> None:
    packed = PACK[suffix](CONTENT)
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(packed[: int(len(packed) * keep)])
    with pytest.raises(DumpError, match=rf"dump{suffix}: .* after byte \d+ .* fetch the file again"):
        list(read_blocks(path, 10_000))


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_changed_byte_is_noticed(tmp_path: Path, suffix: str) -> None:
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(CONTENT) if suffix.endswith("zst") else PACK[suffix](CONTENT))
    packed[len(packed) // 2] ^= 0x55
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(packed)
    with pytest.raises(DumpError, match="after byte"):
        list(read_blocks(path))


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_error_page_saved_under_the_name_of_a_dump_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(b"<html>429 Too Many Requests</html>")
    with pytest.raises(DumpError, match="after byte 0"):
        list(read_blocks(path))


@pytest.mark.parametrize("suffix", PACK)
def test_an_empty_file_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(b"")
    with pytest.raises(DumpError, match="0 bytes"):
        list(read_blocks(path))


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_file_that_unpacks_to_nothing_is_an_error_unless_allowed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(PACK[suffix](b""))
    with pytest.raises(DumpError, match="unpacks to 0 bytes"):
        list(read_blocks(path))
    assert list(read_blocks(path, may_be_empty=True)) == []


def test_a_missing_file_is_an_error_of_the_dump(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"nothing\.xml\.gz: cannot be opened"):
        list(read_blocks(tmp_path / "nothing.xml.gz"))


def test_a_stream_feeds_tarfile(tmp_path: Path) -> None:
    member = tmp_path / "member"
    member.write_bytes(CONTENT)
    with tarfile.open(tmp_path / "dump.tar.bz2", "w:bz2") as tar:
        tar.add(member, "mbdump/member")
    with DumpFile(tmp_path / "dump.tar.bz2") as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        info = next(iter(tar))
        content = tar.extractfile(info)
        assert content is not None
        assert content.read() == CONTENT
