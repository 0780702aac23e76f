"""Tests of checksum files: their contents, the files that they cover, and the report of a difference."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from pipeline.dumps.landing.checksums import (
    compare_checksums,
    compute_hashes,
    hash_file,
    is_checksum_file,
    read_checksums,
    read_published_checksums,
)

if TYPE_CHECKING:
    from pathlib import Path

MD5, SHA256 = hashlib.md5(b"x").hexdigest(), hashlib.sha256(b"x").hexdigest()  # noqa: S324 - as published


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("MD5SUMS", True),
        ("2026/SHA256SUMS.txt", True),
        ("dump_20260901_CHECKSUM.txt", True),
        ("sha256sum.txt", True),
        ("dump.tar.md5", True),
        ("dump.tar.sha256.txt", True),
        ("checksummed.csv", False),
        ("md5", False),
        ("dump.tar", False),
    ],
)
def test_checksum_file_is_known_by_its_name(name: str, is_one: bool) -> None:  # noqa: FBT001
    assert is_checksum_file(name) is is_one


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("MD5SUMS", f"{MD5} *a.csv\n", {"a.csv": {"md5": MD5}}),
        ("SHA256SUMS", f"{SHA256}  a b.csv\n", {"a b.csv": {"sha256": SHA256}}),
        ("day/SHA256SUMS", f"SHA256 (a.csv) = {SHA256.upper()}\n", {"day/a.csv": {"sha256": SHA256}}),
        ("CHECKSUM.txt", f"# both\n{MD5} a.csv\n{SHA256} a.csv\n", {"a.csv": {"md5": MD5, "sha256": SHA256}}),
        ("day/a.csv.md5", f"{MD5}\n", {"day/a.csv": {"md5": MD5}}),
        ("MD5SUMS", f"{MD5}\n", {}),  # no name of a file
        ("day/MD5SUMS", f"{MD5} /srv/out/a.csv\n{MD5} ../b.csv\n", {"day/a.csv": {"md5": MD5}, "day/b.csv": {"md5": MD5}}),
        ("day/MD5SUMS", f"{MD5} c/d.csv\n", {"day/c/d.csv": {"md5": MD5}}),
        ("MD5SUMS", f"{MD5}0 a.csv\n", {}),  # no algorithm gives a hash of that length
    ],
)
def test_every_spelling_names_file_and_algorithm(name: str, text: str, said: dict[str, dict[str, str]]) -> None:
    assert read_checksums(name, text) == said


def test_checksums_of_all_lists_below_a_folder_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    (tmp_path / "MD5SUMS").write_text(f"{MD5} day/a.csv\n")
    (tmp_path / "day" / "a.csv.sha256").write_text(SHA256)
    (tmp_path / "day" / "a.csv").write_text(f"{MD5} no-list.csv")
    assert read_published_checksums(tmp_path) == {tmp_path / "day" / "a.csv": {"md5": MD5, "sha256": SHA256}}


def test_hashes_are_those_of_the_whole_file_and_differences_name_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.dumps.landing.checksums.BLOCK_BYTES", 3)
    (tmp_path / "a.csv").write_bytes(b"ten bytes!")
    expected = {name: hashlib.new(name, b"ten bytes!").hexdigest() for name in ("md5", "sha256")}
    assert compute_hashes(tmp_path / "a.csv", ["md5", "sha256"]) == expected
    assert hash_file(tmp_path / "a.csv", "md5") == expected["md5"]
    assert compare_checksums("a.csv", expected, expected) == []
    (complaint,) = compare_checksums("a.csv", expected, {"md5": expected["md5"], "sha256": SHA256})
    assert complaint == f"a.csv: sha256 is {expected['sha256']}, published is {SHA256}"


def test_md5_is_computed_on_a_system_that_refuses_it_for_security(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = hashlib.new

    def refuse(name: str, data: bytes = b"", *, usedforsecurity: bool = True) -> hashlib._Hash:
        if usedforsecurity:
            raise ValueError("disabled for FIPS")
        return plain(name, data, usedforsecurity=False)

    monkeypatch.setattr(hashlib, "new", refuse)
    (tmp_path / "a.csv").write_bytes(b"x")
    assert hash_file(tmp_path / "a.csv", "md5") == plain("md5", b"x").hexdigest()


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"])
def test_algorithm_follows_from_the_length_of_the_hash(algorithm: str) -> None:
    digest = hashlib.new(algorithm, b"x").hexdigest()
    assert read_checksums("CHECKSUM.txt", f"{digest}  a.csv\n") == {"a.csv": {algorithm: digest}}
    assert read_checksums(f"a.csv.{algorithm}", f"{digest}\n") == {"a.csv": {algorithm: digest}}
