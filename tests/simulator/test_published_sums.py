"""Tests that checksums, line counts and order of archive members follow the publishers, and that no header holds the time."""

from __future__ import annotations

import hashlib
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

DAY = "2026-11-01"


def test_catalog_a_checksums_hold_with_one_space(world: Path) -> None:
    for folder in (world / "catalog_a" / DAY, world / "alternative/catalog_a" / DAY):
        lines = (folder / "discogs_20261101_CHECKSUM.txt").read_text().splitlines()
        assert len(lines) == 4
        for line in lines:
            digest, name = line.split(" ")
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_catalog_b_sums_hold_and_metadata_comes_first(world: Path) -> None:
    folder = world / "catalog_b" / DAY
    for sums, algorithm in (("SHA256SUMS", "sha256"), ("MD5SUMS", "md5")):
        for line in (folder / sums).read_text().splitlines():
            digest, name = line.split(" *")
            assert hashlib.new(algorithm, (folder / name).read_bytes()).hexdigest() == digest
    headings = []
    for archive in ("mbdump.tar.bz2", "mbdump-derived.tar.bz2"):
        with tarfile.open(folder / archive) as tar:
            names = tar.getnames()
            assert names[:5] == ["TIMESTAMP", "COPYING", "README", "REPLICATION_SEQUENCE", "SCHEMA_SEQUENCE"]
            assert all(name.startswith("mbdump/") for name in names[5:])
            stamp, schema = tar.extractfile("TIMESTAMP"), tar.extractfile("SCHEMA_SEQUENCE")
            assert stamp is not None
            assert schema is not None
            headings.append((stamp.read(), schema.read()))
            assert len({member.mtime for member in tar.getmembers()}) == 1
    assert headings[0] == headings[1]
    assert headings[0][1] == b"31\n"


def test_every_table_of_catalog_b_has_one_column_count_but_for_the_malformed_rows(world: Path) -> None:
    for archive in ("mbdump.tar.bz2", "mbdump-derived.tar.bz2"):
        with tarfile.open(world / "catalog_b" / DAY / archive) as tar:
            for member in tar.getmembers()[5:]:
                stream = tar.extractfile(member)
                assert stream is not None
                widths = {line.count(b"\t") for line in stream.read().split(b"\n")[:-1]}
                assert len(widths) == (2 if member.name == "mbdump/recording" else 1), member.name


def test_works_manifest_counts_lines_and_digests(world: Path) -> None:
    for folder in (world / "works" / DAY, world / "alternative/works" / DAY):
        manifest = next(folder.glob("BWARM_Manifest_*.tsv")).read_text().splitlines()
        assert manifest[-1].startswith("EOF")
        for line in manifest[1:-1]:
            _, _, name, count, digest = line.split("\t")
            raw = (folder / name).read_bytes()
            assert (raw.count(b"\n"), hashlib.md5(raw, usedforsecurity=False).hexdigest()) == (int(count), digest)


def test_gzip_headers_have_no_time(world: Path) -> None:
    files = [path for path in world.rglob("*.gz") if path.is_file()]
    assert len(files) > 10
    assert {path.read_bytes()[4:8] for path in files} == {b"\0\0\0\0"}
