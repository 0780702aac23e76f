"""The whole line as an operator runs it: dumps in, a published catalog out, again and again, also when things go wrong."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from catalog_store import open_catalog
from catalog_store.snapshot import verify
from tests.conftest import ROOT, BuiltWorld, run_module

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def table_hashes(catalog: Path) -> dict[str, str]:
    """Of the published tables and of the recognition index."""
    live = catalog / "current"
    files = [*sorted((live / "tables").rglob("*.parquet")), *sorted((live / "serving" / "recognition").rglob("*.*"))]
    return {str(path.relative_to(live)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def copy_of(built: BuiltWorld, place: Path) -> tuple[Path, Path]:
    dumps, catalog = place / "dumps", place / "catalog"
    shutil.copytree(built.dumps, dumps)
    shutil.copytree(built.catalog, catalog, symlinks=True)
    return dumps, catalog


def newest(dumps: Path, platform: str) -> Path:
    return max(path for path in (dumps / platform).iterdir() if path.is_dir())


def test_the_same_input_gives_byte_identical_tables_in_another_folder(built_world: BuiltWorld, tmp_path: Path) -> None:
    run_module("pipeline", "build", "--dumps", built_world.dumps, "--catalog", tmp_path / "catalog")
    first, second = table_hashes(built_world.catalog), table_hashes(tmp_path / "catalog")
    assert len(first) > 20
    assert first == second


def test_a_second_build_keeps_every_id_and_every_byte(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    before = table_hashes(catalog)
    again = run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog)
    assert "unchanged" in again.stderr
    assert table_hashes(catalog) == before
    assert len(list((catalog / "snapshots").iterdir())) == 2


def test_linkage_agrees_with_the_truth(built_world: BuiltWorld) -> None:
    answer = json.loads(run_module("pipeline", "evaluate", "--catalog", built_world.catalog, "--truth", built_world.dumps).stdout)
    assert answer["precision"] > 0.99
    assert answer["recall"] > 0.9
    assert answer["mixed_clusters"] <= 5


def test_every_record_read_was_staged_or_rejected(built_world: BuiltWorld) -> None:
    intake = pl.read_parquet(built_world.catalog / "work/staging/*/intake/*.parquet")
    assert intake["platform"].n_unique() == 7
    assert intake.filter(pl.col("rows_read") != pl.col("rows_staged") + pl.col("rows_rejected")).is_empty()
    assert intake["rows_rejected"].sum() > 0


def test_two_recordings_never_share_an_isrc(built_world: BuiltWorld) -> None:
    codes = pl.read_parquet(built_world.catalog / "current/tables/recording_isrc/*.parquet")
    assert codes["isrc"].is_unique().all()
    assert codes.height > 100


def truncate(dump: Path) -> None:
    file = next(dump.glob("*releases.xml.gz"))
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data[: len(data) // 2])


def wrong_schema(dump: Path) -> None:
    import io  # noqa: PLC0415
    import tarfile  # noqa: PLC0415

    for name in ("mbdump.tar.bz2", "mbdump-derived.tar.bz2"):
        file = dump / name
        if not file.exists():
            continue
        with tarfile.open(file) as old:
            members = [(member, b"9\n" if member.name == "SCHEMA_SEQUENCE" else old.extractfile(member).read()) for member in old]  # type: ignore[union-attr]
        file.unlink()
        with tarfile.open(file, "w:bz2") as new:
            for member, data in members:
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))


def empty_files(dump: Path) -> None:
    for file in list(dump.rglob("*")):
        if file.is_file():
            file.unlink()
            file.write_bytes(b"")


def without_checksums(dump: Path) -> None:
    for file in dump.rglob("*"):
        if "SUM" in file.name:
            file.unlink()


@pytest.mark.parametrize(("platform", "spoil"), [("catalog_a", truncate), ("catalog_b", wrong_schema), ("streamsvc_c", empty_files)])
def test_a_broken_new_dump_leaves_the_last_good_one_in_use(
    built_world: BuiltWorld, tmp_path: Path, platform: str, spoil: Callable[[Path], None]
) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    good = newest(dumps, platform)
    bad = good.with_name("2031-01-01")
    shutil.copytree(good, bad)
    without_checksums(bad)
    spoil(bad)
    before = table_hashes(catalog)
    night = run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog)
    assert "broken" in night.stderr
    assert table_hashes(catalog) == before


def test_a_first_build_on_a_broken_dump_fails_with_the_file_named_and_publishes_nothing(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    shutil.copytree(built_world.dumps / "catalog_a", dumps / "catalog_a")
    without_checksums(newest(dumps, "catalog_a"))
    truncate(newest(dumps, "catalog_a"))
    night = run_module("pipeline", "build", "--dumps", dumps, "--catalog", tmp_path / "catalog", check=False)
    assert night.returncode == 1
    assert "releases.xml.gz" in night.stderr
    assert not (tmp_path / "catalog" / "current").exists()


def test_a_catalog_that_shrank_is_not_published_unless_told_so(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    live = (catalog / "current").readlink()
    for platform in ("streamsvc_a", "streamsvc_b", "streamsvc_c"):
        shutil.rmtree(dumps / platform)
        shutil.rmtree(catalog / "landing" / platform)
        shutil.rmtree(catalog / "work" / "staging" / platform)
    night = run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog, check=False)
    assert night.returncode == 1
    assert "catalog_did_not_shrink" in night.stderr
    assert (catalog / "current").readlink() == live
    run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog, CATALOG_LARGEST_SHRINK="1", CATALOG_LARGEST_FALL="1")
    assert (catalog / "current").readlink() != live


def start_build(dumps: Path, catalog: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pipeline", "build", "--dumps", str(dumps), "--catalog", str(catalog)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def test_a_build_killed_at_any_moment_leaves_the_catalog_readable_and_the_next_build_clean(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    before = table_hashes(catalog)
    shutil.rmtree(catalog / "work" / "staging")
    started = time.monotonic()
    assert start_build(dumps, catalog).wait() == 0
    whole = time.monotonic() - started
    for share in (0.2, 0.5, 0.75, 0.95):
        shutil.rmtree(catalog / "work" / "staging", ignore_errors=True)
        build = start_build(dumps, catalog)
        time.sleep(whole * share)
        os.killpg(build.pid, signal.SIGKILL)
        build.wait()
        verify((catalog / "current").resolve())
        with open_catalog(catalog) as live:
            assert live.genres()
    run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog)
    assert table_hashes(catalog) == before
    leftovers = [path.name for path in (catalog / "snapshots").iterdir() if path.name.startswith(".")]
    assert leftovers == []


def test_rollback_makes_the_earlier_snapshot_live_again(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog)
    listed = [json.loads(line) for line in run_module("pipeline", "snapshots", "--catalog", catalog).stdout.splitlines()]
    assert [snapshot["is_current"] for snapshot in listed] == [False, True]
    run_module("pipeline", "rollback", "--catalog", catalog, "--to", listed[0]["id"])
    assert (catalog / "current").resolve().name == listed[0]["id"]
    refused = run_module("pipeline", "rollback", "--catalog", catalog, "--to", "nonsense", check=False)
    assert refused.returncode == 1
    assert "nonsense" in refused.stderr


def test_the_analyst_file_answers_from_a_copied_snapshot(built_world: BuiltWorld, tmp_path: Path) -> None:
    copied = tmp_path / "elsewhere"
    shutil.copytree((built_world.catalog / "current").resolve(), copied)
    with duckdb.connect(str(copied / "catalog.duckdb"), read_only=True) as connection:
        rows = connection.execute("SELECT count(*) FROM recording").fetchone()
    assert rows is not None
    assert rows[0] > 100
