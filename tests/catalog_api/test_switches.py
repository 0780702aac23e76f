"""Tests of a running server with several workers under mixed requests, while the snapshot changes three times, once to a damaged one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from benchmarks.switches import DAMAGED, EDITIONS, build_mixed_requests, publish_editions, start_server, switch_under_load, wait_until
from catalog_store.tables import CATALOG_TABLES
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from pathlib import Path

WORKERS = 2


@pytest.mark.slow
def test_no_answer_fails_or_mixes_snapshots_while_they_change_and_the_old_ones_are_freed(tmp_path: Path) -> None:
    made = make_tables(tmp_path / "tables", 60)
    tables = {table.name: made[table.name] for table in CATALOG_TABLES}
    publish_editions(tables, tmp_path / "catalog", tmp_path / "editions")
    with start_server(tmp_path / "catalog", WORKERS, tmp_path) as server:
        requests = build_mixed_requests(tables, seed=1)
        verdict = asyncio.run(switch_under_load(server, WORKERS, requests, clients=8, seconds=1))
        assert (verdict.failed, verdict.mixed) == ([], [])
        assert set(verdict.by_edition) == set(EDITIONS) - {DAMAGED}
        assert server.count_log_lines("snapshot refused", DAMAGED) == WORKERS
        wait_until(lambda: server.list_open_editions() == {EDITIONS[0]}, "the superseded snapshots to be freed")
