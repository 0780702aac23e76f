"""Tests of dump folders with entries that are not files: pipes, devices, links to them.

Fetching and reading come to an end, and the night goes on.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from pipeline.dumps.intake.newest_dump import stage_newest
from pipeline.dumps.landing.landing_zone import land
from pipeline.dumps.landing.sources import Source
from tests.pipeline.dumps.conftest import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.pipeline.dumps.conftest import Case

TRACK = b'{"id": 1, "name": "One", "mix_name": "Original Mix", "artists": [{"id": 5, "name": "A"}], "release": {"id": 9, "name": "R"}}\n'


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.parent / ".pipe")
    path.symlink_to(".pipe")


def link_to_nowhere(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(path.parent, os.O_RDONLY)  # the whole path may be longer than a socket's name
        server.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)


ODD = [pipe, link_to_a_device, link_to_a_pipe, link_to_nowhere, link_to_itself, listening]


@pytest.mark.parametrize("odd", ODD)
def test_special_file_in_a_source_keeps_the_dump_before(tmp_path: Path, odd: Callable[[Path], None]) -> None:
    source, zone, folder = Source("store_a", str(tmp_path / "up")), tmp_path / "zone", tmp_path / "staged"
    (tmp_path / "up" / "2026-09-01").mkdir(parents=True)
    (tmp_path / "up" / "2026-09-01" / "tracks.ndjson").write_bytes(TRACK)
    assert land(source, zone).status == "new"
    assert stage_newest("store_a", zone, folder).status == "staged"
    (tmp_path / "up" / "2026-09-02").mkdir()
    (tmp_path / "up" / "2026-09-02" / "tracks.ndjson").write_bytes(TRACK)
    odd(tmp_path / "up" / "2026-09-02" / "releases.ndjson")
    landing = land(source, zone)
    assert landing.status == "kept_last_good"
    assert "releases.ndjson" in str(landing.problem)
    assert stage_newest("store_a", zone, folder).dump == "2026-09-01"
    (tmp_path / "up" / "2026-09-02" / "releases.ndjson").unlink()
    assert land(source, zone).status == "new"
    assert stage_newest("store_a", zone, folder).dump == "2026-09-02"


@pytest.mark.parametrize("form", ["store_a objects", "streamsvc_b feed", "catalog_a 2026", "works 1", "catalog_b unpacked"])
@pytest.mark.parametrize("odd", [pipe, link_to_a_device, link_to_nowhere, link_to_itself])
def test_special_file_in_a_dump_is_refused_by_its_name(case: Callable[[str], Case], form: str, odd: Callable[[Path], None]) -> None:
    damaged = case(form)
    damaged.file.unlink()
    odd(damaged.file)
    assert damaged.file.name in damaged.refusal()


@pytest.mark.parametrize("form", ["store_a objects", "store_a tables", "streamsvc_a parquet", "streamsvc_b feed"])
@pytest.mark.parametrize("entry", [b"caf\xe9.txt", b"caf\xe9/readme.txt"], ids=["file", "folder"])
def test_name_that_is_not_utf_8_is_refused_and_shown(case: Callable[[str], Case], form: str, entry: bytes) -> None:
    damaged = case(form)
    path = damaged.dump / os.fsdecode(entry)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"?")
    assert r"the name of b'caf\xe9" in damaged.refusal()
    path.rename(damaged.dump / "readme.txt")
    if path.parent != damaged.dump:
        path.parent.rmdir()
    assert damaged.rejects().filter(reason="unread_layout").is_empty()


@pytest.mark.parametrize("form", FORMS)
def test_sparse_file_of_zeros_is_refused_by_its_name(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    with damaged.file.open("wb") as file:
        file.truncate(70 << 20)
    assert damaged.file.name in damaged.refusal()
