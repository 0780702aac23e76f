from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.memory_budget import MemoryBudget, use_budget
from catalog_store.publisher import publish
from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.defs.snapshot_assets import PUBLISHED
from pipeline.dumps.intake.newest_dump import stage_newest
from pipeline.dumps.readers import ndjson
from pipeline.dumps.readers.ndjson import read_json_blocks
from pipeline.engine.pool import Engine, map_ordered, start_workers, use_engine
from pipeline.engine.spark import Cluster, ClusterError, open_cluster
from pipeline.engine.usage import measure_usage
from pipeline.linkage.id_registry import read_next_ids
from pipeline.paths import BuildPaths
from tests.pipeline.engine.pool_functions import fail_at_three, memory, process
from tests.pipeline.engine.sail import ROOT, start_sail
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import BuiltWorld


def square(number: int) -> int:
    return number * number


def double(text: bytes) -> bytes:
    return text * 2


def square_there(engine: Engine) -> list[int]:
    with use_engine(engine):
        return list(map_ordered(square, [2]))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with start_sail(tmp_path_factory.mktemp("sail") / "log") as url:
        yield Engine(url, 2)


def test_a_cluster_returns_results_in_the_order_of_the_inputs(engine: Engine) -> None:
    with use_engine(engine):
        assert list(map_ordered(square, range(9))) == [number * number for number in range(9)]


def test_a_cluster_does_the_work_elsewhere_even_if_it_is_small(engine: Engine) -> None:
    with use_engine(engine), start_workers(is_small=True) as pool:
        assert os.getpid() not in set(map_ordered(process, range(3), pool=pool))


def test_work_stays_here_where_no_engine_is_in_use(engine: Engine) -> None:
    with use_engine(engine), use_engine(None), start_workers(1) as pool:
        assert set(map_ordered(process, range(3), pool=pool)) == {os.getpid()}
    assert set(map_ordered(process, range(3))) == {os.getpid()}


def test_an_error_on_a_cluster_keeps_its_type_and_says_where_it_was_raised(engine: Engine) -> None:
    with use_engine(engine), pytest.raises(ValueError, match="three is out") as found:
        list(map_ordered(fail_at_three, range(100)))
    (note,) = found.value.__notes__
    assert "process" in note
    assert "in fail_at_three" in note


def test_a_task_works_within_the_memory_of_one_process(engine: Engine) -> None:
    with use_budget(MemoryBudget(6_000_000_000, processes=3)), use_engine(engine):
        assert list(map_ordered(memory, range(2))) == [2_000_000_000] * 2


def test_a_task_may_be_megabytes_of_any_bytes(engine: Engine) -> None:
    block = bytes(range(256)) * 20_000
    with use_engine(engine):
        assert list(map_ordered(double, [block, b""])) == [block * 2, b""]


def read_json(file: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    blocks = list(read_json_blocks(file, {"id": "VARCHAR", "tags": "VARCHAR[]"}))
    return pl.concat([block.frame for block in blocks]), pl.concat([block.build_rejects("source_recording") for block in blocks])


def test_a_cluster_reads_blocks_of_json_as_this_process_does(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "BLOCK_BYTES", 400)
    file = tmp_path / "records.ndjson.gz"
    lines = [f'{{"id": "{number}", "tags": ["a", "{number % 3}"]}}' for number in range(60)]
    lines[7], lines[40] = '{"id": "7', '{"id": "40", "tags": {"no": "list"}}'
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    here = read_json(file)
    tasks: list[object] = []
    run = Cluster._run
    monkeypatch.setattr(Cluster, "_run", lambda self, function, item: (tasks.append(item), run(self, function, item))[1])
    with use_engine(engine):
        there = read_json(file)
    assert len(tasks) > 2
    assert [frame.to_dicts() for frame in there] == [frame.to_dicts() for frame in here]
    assert here[1].height == 2


def test_a_cluster_that_does_not_answer_is_named_although_another_one_does(engine: Engine) -> None:
    with use_engine(engine):
        assert list(map_ordered(square, [2])) == [4]
    with pytest.raises(ClusterError, match=r"sc://127\.0\.0\.1:1 does not answer: .*refused"), open_cluster("sc://127.0.0.1:1", 1):
        pass


def test_a_session_may_begin_outside_of_the_main_thread(tmp_path: Path) -> None:
    with start_sail(tmp_path / "log") as url, ThreadPoolExecutor(1) as thread:
        assert thread.submit(square_there, Engine(url, 1)).result(PATIENCE_SECONDS) == [4]


ASK = """
import sys
from pipeline.engine.spark import open_cluster
with open_cluster(sys.argv[1], 1) as cluster:
    print(cluster.submit(abs, -3).result(), flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
def test_a_process_ends_although_its_server_is_gone(tmp_path: Path) -> None:
    with start_sail(tmp_path / "log") as url:
        pipe = subprocess.PIPE
        asker = subprocess.Popen([sys.executable, "-c", ASK, url], stdin=pipe, stdout=pipe, cwd=ROOT, text=True)
        assert asker.stdout
        assert asker.stdout.readline() == "3\n"
    # With the client's own patience this takes ten minutes.
    asker.communicate("\n", timeout=PATIENCE_SECONDS / 2)
    assert asker.returncode == 0


def test_the_token_of_a_cluster_is_not_shown() -> None:
    url = "sc://127.0.0.1:3/;token=secret"
    with (
        pytest.raises(ClusterError, match=r"sc://127\.0\.0\.1:3/ does not answer") as found,
        open_cluster(url, 1),
    ):
        pass
    assert "secret" not in str(found.value)


def test_a_missing_client_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ClusterError, match=r"docs/guides/cluster\.md"), open_cluster("sc://127.0.0.1:2", 1):
        pass


JSON_PLATFORM = "store_a"
CLUSTER_STEPS = ("atoms", "edges", "clusters", "recording_ids", "artists", "recordings", "counts", "links", "genres", "tracks")
"""Steps from `atoms` on that send work to a cluster, and two between them that do not."""
ON_THE_DRIVER = {"clusters", "counts"}
SHARED_TABLES = {"recording_release", "artist", "label"}
"""Tables that two steps write."""


def hash_files(folder: Path, pattern: str = "*") -> dict[str, str]:
    files = [file for file in folder.rglob(pattern) if file.is_file()]
    assert files, folder
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def publish_tables(paths: BuildPaths, snapshot_id: str) -> Path:
    tables = {table.name: paths.table(table.name) for table in PUBLISHED}
    with start_workers(is_small=True) as pool:
        run = partial(map_ordered, pool=pool)
        return publish(
            tables, paths.root, snapshot_id=snapshot_id, next_ids=read_next_ids(paths), recognition=paths.recognition, run=run
        ).folder


def test_every_step_gives_the_tables_of_the_shared_world_on_a_cluster(built_world: BuiltWorld, engine: Engine, tmp_path: Path) -> None:
    shutil.copytree(built_world.catalog, tmp_path / "catalog", ignore=shutil.ignore_patterns("snapshots", "current"))
    here, there = BuildPaths(built_world.catalog), BuildPaths(tmp_path / "catalog")
    staging = there.staging(JSON_PLATFORM)
    shutil.rmtree(staging)
    runs: dict[str, Callable[[], object]] = {"staging": partial(stage_newest, JSON_PLATFORM, there.landing(JSON_PLATFORM), staging)}
    compared = [(here.staging(JSON_PLATFORM), staging)]
    steps = {step.name: step for step in [*linkage_assets.list_steps(), *identity_assets.list_steps(), *catalog_assets.list_steps()]}
    for name in CLUSTER_STEPS:
        runs[name] = partial(steps[name].run, there)
        tables = [table.name for table in steps[name].tables]
        compared += [(here.table(table), there.table(table)) for table in tables]
        for table in {*tables} - SHARED_TABLES:
            shutil.rmtree(there.table(table))
    worked = set()
    with use_engine(engine):
        for name, run in runs.items():
            with measure_usage() as usage:
                run()
            worked |= {name} if usage.worker_cpu_seconds else set()
        snapshot = publish_tables(there, here.current.resolve().name)
    assert worked == set(runs) - ON_THE_DRIVER
    assert not list(there.root.rglob("*.pending"))
    for one, other in compared:
        assert hash_files(other, "*.parquet") == hash_files(one, "*.parquet"), other
    assert hash_files(snapshot / "serving") == hash_files(here.current.resolve() / "serving")
