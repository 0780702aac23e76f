"""Tests of edges that end between two of their parts and ranges: the next build goes on there and writes the same bytes."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.memory_budget import MemoryBudget, use_budget
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables.files import list_parts
from pipeline.engine.checkpoints import use_token
from pipeline.linkage import pair_buckets, stages
from pipeline.paths import BuildPaths
from tests.pipeline.interrupter import Interrupter
from tests.pipeline.linkage.test_stages import stage
from tests.pipeline.linkage.worlds import Records, made_up_world

if TYPE_CHECKING:
    from pathlib import Path

STAGES = {
    "regroup_by_code",
    "find_code_edges",
    "find_artist_typos",
    "regroup_by_title",
    "find_title_typos",
    "send_rows",
    "send_pairs",
    "find_worthy_pairs",
    "find_key_edges",
}
write_edges = partial(stages.write_edges, buckets=3)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildPaths:
    monkeypatch.setattr(pair_buckets, "BLOCKS_PER_RANGE", 20)
    shared = Records()
    # A title of two artists: atoms are compared by title, too.
    shared.add("id1", "One Title", "Anna Blum", platform=CATALOG_PLATFORMS[0])
    shared.add("id2", "One Title", "Anna Blumm", platform=CATALOG_PLATFORMS[1])
    made = stage(BuildPaths(tmp_path), pl.concat([made_up_world(seed=6, songs=25)[0], shared.frame()]))
    stages.write_atoms(made, buckets=3)
    return made


def hash_edges(paths: BuildPaths) -> list[str]:
    return [hashlib.sha256(part.read_bytes()).hexdigest() for part in list_parts(paths.table("edge"))]


def test_edges_interrupted_again_and_again_repeat_no_input_and_end_byte_identical(
    paths: BuildPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After every third input: each run finds the evidence between them again.
    inputs = Interrupter(monkeypatch).check_turns(write_edges, paths, 3, hash_edges)
    assert {name for name, _ in inputs} >= STAGES
    assert ("find_worthy_pairs", 1) in inputs
    assert not list((paths.root / "work" / "linkage").glob("*.spill"))


def test_edges_with_another_memory_begin_anew(paths: BuildPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupter = Interrupter(monkeypatch)
    for gigabytes in (2, 3):
        with use_token("tonight"), use_budget(MemoryBudget(gigabytes * 10**9)):
            assert not interrupter.run(write_edges, paths, 1)
    assert interrupter.finished == [("regroup_by_code", 0)] * 2
