"""Exports of catalog_b that are cut, mixed, empty or of another layout are refused."""

from __future__ import annotations

import bz2
from typing import TYPE_CHECKING

import pytest

from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from tests.pipeline.dumps.platforms.catalog_b_archives import METADATA, Staged, recording, small_world, stage, tar

if TYPE_CHECKING:
    from pathlib import Path


def test_unknown_schema_is_refused_and_the_one_before_is_reported(dump: Path) -> None:
    (dump / "mbdump.tar").write_bytes(tar(small_world(), METADATA | {"SCHEMA_SEQUENCE": "32\n"}))
    with pytest.raises(DumpError, match=r"mbdump\.tar: SCHEMA_SEQUENCE is '32'"):
        stage(dump)
    (dump / "mbdump.tar").write_bytes(tar(small_world(), METADATA | {"SCHEMA_SEQUENCE": "30\n"}))
    said: list[str] = []
    stage_dump("catalog_b", dump, dump.parent / "other", said.append)
    assert any("schema 30" in line for line in said)


def test_archives_of_two_exports_are_refused(dump: Path) -> None:
    (dump / "mbdump-derived.tar").write_bytes(tar({}, METADATA | {"TIMESTAMP": "2026-07-25 00:00:00+00\n"}))
    with pytest.raises(DumpError, match=r"mbdump-derived\.tar: TIMESTAMP is '2026-07-25.*archives of two exports"):
        stage(dump, small_world())


def test_an_archive_without_metadata_is_refused(dump: Path) -> None:
    (dump / "mbdump.tar").write_bytes(tar(small_world(), {}))
    with pytest.raises(DumpError, match="TIMESTAMP and SCHEMA_SEQUENCE missing"):
        stage(dump)


def test_a_folder_without_a_dump_is_refused(dump: Path) -> None:
    with pytest.raises(DumpError, match=r"neither mbdump\.tar\.bz2 nor an unpacked mbdump/ folder"):
        stage(dump)


def test_a_truncated_archive_names_the_member_and_the_byte(dump: Path) -> None:
    rows = [recording(number, f"Song {number * 7919 % 10007}") for number in range(1, 20_000)]
    packed = bz2.compress(tar(small_world() | {"recording": rows}), compresslevel=1)
    (dump / "mbdump.tar.bz2").write_bytes(packed[: len(packed) * 9 // 10])
    with pytest.raises(DumpError, match=r"mbdump\.tar\.bz2: .*member mbdump/recording: .*byte \d+"):
        stage(dump)
    assert not (dump.parent / "staging" / "catalog_b").exists()


@pytest.mark.parametrize("cut", [1, 512 * 3])
def test_a_tar_without_its_end_is_refused_even_at_a_member_border(dump: Path, cut: int) -> None:
    whole = tar(small_world())
    end = len(whole.rstrip(b"\0")) // 512 * 512 + 512
    (dump / "mbdump.tar").write_bytes(whole[: end if cut == 1 else end - cut])
    with pytest.raises(DumpError, match=r"mbdump\.tar: .*byte \d+"):
        stage(dump)


def test_a_damaged_member_header_is_refused_instead_of_taken_for_the_end(dump: Path) -> None:
    whole = bytearray(tar(small_world()))
    position = whole.index(b"mbdump/release_status")
    whole[position : position + 100] = b"\xff" * 100
    (dump / "mbdump.tar").write_bytes(bytes(whole))
    with pytest.raises(DumpError, match=r"mbdump\.tar: after member mbdump/recording: .*damaged"):
        stage(dump)


def test_changed_layout_is_refused_at_once_instead_of_millions_of_rejects(dump: Path) -> None:
    rows = [(*recording(number), "new column") for number in range(1, 200)]
    with pytest.raises(DumpError, match=r"mbdump/recording: none of the first 199 lines has 9 cells.*layout has changed"):
        stage(dump, small_world() | {"recording": rows})


def test_an_empty_archive_is_refused(dump: Path) -> None:
    (dump / "mbdump.tar.bz2").write_bytes(b"")
    with pytest.raises(DumpError, match="the file is empty"):
        stage(dump)


def test_a_failed_run_leaves_the_staging_of_the_day_before(dump: Path) -> None:
    before = stage(dump, small_world()).table("source_recording")
    (dump / "mbdump.tar").write_bytes(tar(small_world())[:6000])
    with pytest.raises(DumpError):
        stage(dump)
    assert Staged(dump.parent / "staging" / "catalog_b").table("source_recording").equals(before)
