"""Tests that a server over a snapshot without tables and analysts' file answers as one over the whole snapshot."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from benchmarks.switches import EDITIONS, Client, Request, Server, build_mixed_requests, start_server, strip_request_parts
from catalog_api.problems import render_problem
from catalog_store.errors import SnapshotInvalidError, TablesAbsentError, TablesDamagedError
from catalog_store.publisher import publish, rollback
from catalog_store.reader import open_catalog
from catalog_store.scrub import Scrubber
from catalog_store.snapshot import find_role, read_manifest, verify
from catalog_store.snapshot_invariants import find_violations
from catalog_store.tables.files import list_parts
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIVE = EDITIONS[0]


def drop_analyst_files(folder: Path) -> None:
    for file in read_manifest(folder).list_files("analyst"):
        (folder / file.path).unlink()
    shutil.rmtree(folder / "tables")


async def ask_all(server: Server, requests: Sequence[Request]) -> list[tuple[int, bytes]]:
    with closing(Client(server.port, server.key)) as client:
        return [(status, strip_request_parts(body)) for status, body in [await client.ask(request) for request in requests]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tables = make_tables(tmp_path / "tables", 60)
    publish(tables, tmp_path / "catalog", snapshot_id=LIVE, next_ids=dict.fromkeys(("recording", "artist", "release", "label"), 10**9))
    return tmp_path / "catalog"


@pytest.mark.slow
def test_serving_files_alone_answer_every_request_and_tables_only_provenance(root: Path, tmp_path: Path) -> None:
    tables = {path.name: path for path in (tmp_path / "tables").iterdir()}
    requests = build_mixed_requests(tables, seed=1)
    places = [tmp_path / "whole", tmp_path / "node"]
    for place in places:
        place.mkdir()
    with start_server(root, 2, places[0]) as whole:
        expected = asyncio.run(ask_all(whole, requests))
    assert {status for status, _ in expected} <= {200, 404}
    drop_analyst_files(root / "snapshots" / LIVE)
    with start_server(root, 2, places[1]) as node:
        assert asyncio.run(ask_all(node, requests)) == expected
        track = next(request.path for request in requests if request.path.startswith("/v1/tracks/") and request.path[11:].isdigit())
        [(status, body)] = asyncio.run(ask_all(node, [Request(f"{track}?include=provenance")]))
    assert status == 503
    assert b'"code":"provenance_unavailable"' in body


def test_folder_without_one_roles_files_is_whole_for_the_other_role_only(root: Path) -> None:
    folder = root / "snapshots" / LIVE
    manifest = read_manifest(folder)
    assert find_role(folder, manifest) == "all"
    assert [*manifest.list_files("serving"), *manifest.list_files("analyst")]
    assert {file.path for role in ("serving", "analyst") for file in manifest.list_files(role)} == {
        file.path for file in manifest.list_files()
    }
    drop_analyst_files(folder)
    assert find_role(folder, manifest) == "serving"
    assert verify(folder, role="serving") == manifest
    assert find_violations(folder, manifest, "serving") == []
    for role in ("all", "analyst"):
        with pytest.raises(SnapshotInvalidError, match=r"tables/recording/part-00000-\w+\.parquet is missing"):
            verify(folder, role=role)
    assert rollback(root, LIVE).id == LIVE
    with open_catalog(root) as catalog, pytest.raises(TablesAbsentError, match="no tables"):
        catalog.collect_evidence(1)
    (folder / "stray").write_bytes(b"")
    assert [broken.name for broken in find_violations(folder, manifest, "serving")] == ["files_are_listed"]


def test_damaged_and_missing_tables_are_unavailable_and_the_log_names_them(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    tables = root / "snapshots" / LIVE / "tables"
    for part in list_parts(tables / "recording_member"):
        part.write_bytes(part.read_bytes()[:200])
    shutil.rmtree(tables / "isrc_conflict", ignore_errors=True)
    with open_catalog(root) as catalog:
        for ask, place in ((lambda: catalog.collect_evidence(1), "PAR1"), (catalog.list_isrc_conflicts, "isrc_conflict")):
            with pytest.raises(TablesDamagedError, match=place) as caught:
                ask()
            answer = render_problem({"path": "/v1/tracks/1"}, caught.value)
            assert (answer.status, b"provenance_unavailable" in answer.body, b"snapshots" in answer.body) == (503, True, False)
            assert place in caplog.text


def test_folder_of_analysts_is_whole_for_their_role_only(root: Path) -> None:
    folder = root / "snapshots" / LIVE
    shutil.rmtree(folder / "serving")
    manifest = read_manifest(folder)
    assert find_role(folder, manifest) == "analyst"
    assert verify(folder, role="analyst") == manifest
    assert find_violations(folder, manifest, "analyst") == []
    with pytest.raises(SnapshotInvalidError, match=r"serving/serving\.sqlite is missing"):
        open_catalog(root)


def test_scrub_misses_no_tables_on_a_server_and_one_table_elsewhere(root: Path) -> None:
    folder = root / "snapshots" / LIVE
    part = list_parts(folder / "tables" / "recording")[0]
    part.unlink()
    for damaged in ({part.relative_to(folder).as_posix()}, set()):
        scrubber = Scrubber(root, 1e9, 1.0, lambda _state: None)
        scrubber._read_through(folder)
        assert set(scrubber.state.damaged) == damaged
        if damaged:
            shutil.rmtree(folder / "tables")
            for name in ("catalog.duckdb", *(attached.path for attached in read_manifest(folder).attachments)):
                (folder / name).unlink()
