from __future__ import annotations

import json
import shutil
from datetime import date
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.snapshot import FORMAT, FORMAT_VERSION, Manifest, StoredFile, StoredTable, TablePart, hash_file
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, list_parts, read_table, write_table
from pipeline.linkage.id_registry import (
    KINDS,
    MEMBERS,
    RegistryError,
    collect_registry,
    get_work_folder,
    read_previous_registry,
    rebuild_registry,
    require_registry,
    save_assignment,
)
from pipeline.linkage.id_rules import assign_ids
from pipeline.paths import BuildPaths
from tests.commands import run_pipeline
from tests.pipeline.linkage.id_builds import resolve_keys

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.linkage.id_rules import Assignment


def build(paths: BuildPaths, kind: str, *groups: str) -> Assignment:
    """Assign ids to one group per argument, whose letters are its members: external ids at store_a. Write the table of members too."""
    registry, next_id = read_previous_registry(paths, kind)
    rows = pl.DataFrame(
        [(number, f"store_a:{letter}") for number, letters in enumerate(groups) for letter in letters],
        schema={"group": pl.Int64, "source_key": pl.String},
        orient="row",
    )
    assignment = assign_ids(rows, registry, next_id)
    save_assignment(get_work_folder(paths, kind), kind, assignment)
    ids = rows.join(assignment.ids, on="group")
    external_id = pl.col("source_key").str.strip_prefix("store_a:")
    member = ids.select(pl.col("entity_id").alias(f"{kind}_id"), platform=pl.lit("store_a"), external_id=external_id)
    write_table(TABLES[MEMBERS[kind]], paths.table(MEMBERS[kind]), member)
    return assignment


def publish(paths: BuildPaths, name: str) -> dict[str, int]:
    """Publish the registry as a publish does: copy the tables, write a manifest with sums and next ids, switch `current`."""
    next_ids = collect_registry(paths)
    folder, tables = paths.snapshots / name, {}
    for table in ("id_registry", "redirect", *MEMBERS.values()):
        if paths.table(table).is_dir():
            shutil.copytree(paths.table(table), folder / "tables" / table)
            files = [
                TablePart(str(path.relative_to(folder)), count_rows(path.parent), path.stat().st_size, hash_file(path))
                for path in list_parts(folder / "tables" / table)
            ]
            tables[table] = StoredTable(1, 1, tuple(files))
    manifest = Manifest(FORMAT, FORMAT_VERSION, name, "2026-01-01T00:00:00Z", "x", tables, next_ids, StoredFile("x", 0, ""), ())
    (folder / "manifest.json").write_bytes(manifest.encode())
    make_live(paths, name)
    return next_ids


def make_live(paths: BuildPaths, name: str) -> None:
    paths.current.unlink(missing_ok=True)
    paths.current.symlink_to(paths.snapshots / name)


def redirects(paths: BuildPaths) -> list[tuple[str, int, int | None]]:
    return read_table(TABLES["redirect"], paths.table("redirect")).rows()


def ids(paths: BuildPaths, kind: str) -> dict[str, int]:
    return {key.removeprefix("store_a:"): entity for key, entity in resolve_keys(read_previous_registry(paths, kind)[0]).items()}


@pytest.fixture
def paths(tmp_path: Path) -> BuildPaths:
    return BuildPaths(tmp_path)


def test_registry_is_empty_before_the_first_publish(paths: BuildPaths) -> None:
    registry, next_id = read_previous_registry(paths, "recording")
    assert registry.keys.is_empty()
    assert next_id == 1
    require_registry(paths)


def test_registry_and_redirects_survive_from_snapshot_to_snapshot(paths: BuildPaths) -> None:
    build(paths, "recording", "ab", "c", "d")
    build(paths, "artist", "x")
    publish(paths, "one")
    build(paths, "recording", "abc", "d")
    publish(paths, "two")
    build(paths, "recording", "abcd")
    assert publish(paths, "three") == {"artist": 2, "label": 1, "recording": 4, "release": 1}
    assert redirects(paths) == [("recording", 2, 1), ("recording", 3, 1)]
    assert ids(paths, "artist") == {"x": 1}
    assert ids(paths, "recording") == {"a": 1, "b": 1, "c": 1, "d": 1}
    rows = read_table(TABLES["id_registry"], paths.table("id_registry"))
    assert rows.equals(rows.sort("kind", "source_key"))
    assert rows.filter(pl.col("source_key").str.starts_with("id:")).rows() == [("recording", "id:2", 1), ("recording", "id:3", 1)]


def test_redirect_comes_back_with_its_end_over_snapshots(paths: BuildPaths) -> None:
    for name, groups in {"one": ("a", "bcd", "x"), "two": ("abcd", "x"), "three": ("x",), "four": ("x",), "five": ("bcd", "x")}.items():
        build(paths, "artist", *groups)
        publish(paths, name)
        if name == "three":
            assert redirects(paths) == [("artist", 1, None), ("artist", 2, None)]
    assert redirects(paths) == [("artist", 1, 2)]


def test_ids_of_a_rolled_back_snapshot_are_not_reused(paths: BuildPaths) -> None:
    build(paths, "recording", "a")
    publish(paths, "one")
    build(paths, "recording", "a", "b")
    publish(paths, "two")
    make_live(paths, "one")
    build(paths, "recording", "a", "c")
    publish(paths, "three")
    assert ids(paths, "recording") == {"a": 1, "c": 3}


def test_rollback_undoes_a_merge_and_the_next_build_repeats_it(paths: BuildPaths) -> None:
    build(paths, "recording", "a", "bc")
    publish(paths, "one")
    build(paths, "recording", "abc")
    publish(paths, "two")
    make_live(paths, "one")
    build(paths, "recording", "a", "bc")
    publish(paths, "three")
    assert redirects(paths) == []
    build(paths, "recording", "abc")
    publish(paths, "four")
    assert redirects(paths) == [("recording", 1, 2)]


def test_kind_without_assignment_keeps_the_registry_of_the_live_snapshot(paths: BuildPaths) -> None:
    build(paths, "label", "ab", "c")
    publish(paths, "one")
    build(paths, "label", "abc")
    publish(paths, "two")
    shutil.rmtree(paths.root / "work" / "registry")
    publish(paths, "three")
    assert redirects(paths) == [("label", 2, 1)]
    make_live(paths, "one")
    publish(paths, "four")
    assert (redirects(paths), ids(paths, "label")) == ([], {"a": 1, "b": 1, "c": 2})


def test_unknown_kind_is_rejected(paths: BuildPaths) -> None:
    with pytest.raises(ValueError, match="kind 'work' has no ids"):
        get_work_folder(paths, "work")


def damage(folder: Path, how: str) -> None:
    part = list_parts(folder)[0]
    if how == "lost":
        shutil.rmtree(folder)
    elif how == "part lost":
        part.unlink()
    elif how == "cut off":
        part.write_bytes(part.read_bytes()[:-1])
    else:
        content = bytearray(part.read_bytes())
        content[10] ^= 1
        part.write_bytes(content)


@pytest.mark.parametrize("how", ["lost", "part lost", "cut off", "one bit"])
def test_build_on_a_lost_registry_stops_until_the_named_command_ran(paths: BuildPaths, how: str) -> None:
    for kind in KINDS:
        build(paths, kind, "ab", "c", "d")
    publish(paths, "one")
    build(paths, "recording", "abc", "d")
    publish(paths, "two")
    damage(paths.snapshots / "two" / "tables" / "id_registry", how)

    with pytest.raises(RegistryError, match=rf"two has no usable id registry .*registry rebuild --catalog {paths.root}"):
        require_registry(paths)
    facts = json.loads(run_pipeline("registry", "rebuild", "--catalog", paths.root).stdout)
    assert {"snapshot": "two", "rebuilt": True, "recording": 4, "artist": 4}.items() <= facts.items()
    require_registry(paths)
    assert ids(paths, "recording") == {"a": 1, "b": 1, "c": 1, "d": 3}
    build(paths, "recording", "abc", "d", "e")
    publish(paths, "three")
    assert redirects(paths) == [("recording", 2, 1)]
    assert ids(paths, "recording") == {"a": 1, "b": 1, "c": 1, "d": 3, "e": 4}
    assert rebuild_registry(paths) == {"snapshot": "three", "rebuilt": False, "why": "its registry is usable"}


def test_rebuilt_registry_serves_its_own_snapshot_only(paths: BuildPaths) -> None:
    for name in ("one", "two"):
        for kind in KINDS:
            build(paths, kind, "ab")
        publish(paths, name)
        damage(paths.snapshots / name / "tables" / "id_registry", "lost")
        with pytest.raises(RegistryError, match=f"{name} has no usable id registry"):
            read_previous_registry(paths, "recording")
        rebuild_registry(paths)
        assert ids(paths, "recording") == {"a": 1, "b": 1}


def test_registry_cannot_be_rebuilt_from_a_snapshot_without_member_tables(paths: BuildPaths) -> None:
    for kind in KINDS:
        build(paths, kind, "ab")
    publish(paths, "one")
    for name in ("id_registry", "label_source"):
        damage(paths.snapshots / "one" / "tables" / name, "lost")
    refused = run_pipeline("registry", "rebuild", "--catalog", paths.root, check=False)
    assert refused.returncode == 1
    assert "tables/label_source/part-00000.parquet is missing" in refused.stderr
    assert "roll back to another snapshot" in refused.stderr


@pytest.mark.parametrize("how", ["lost", "part lost", "cut off", "one bit"])
@pytest.mark.parametrize("is_registry_lost", [False, True])
def test_damaged_recording_members_stop_the_build_and_make_no_registry(paths: BuildPaths, how: str, *, is_registry_lost: bool) -> None:
    for kind in KINDS:
        build(paths, kind, "ab", "c")
    publish(paths, "one")
    if is_registry_lost:
        damage(paths.snapshots / "one" / "tables" / "id_registry", "lost")
        rebuild_registry(paths)
    damage(paths.snapshots / "one" / "tables" / "recording_member", how)
    for act in (require_registry, rebuild_registry):
        with pytest.raises(RegistryError, match=r"recording_member.*: roll back to another snapshot, or bring this one back"):
            act(paths)


def test_ids_do_not_restart_when_no_snapshot_is_live(paths: BuildPaths) -> None:
    build(paths, "recording", "a")
    publish(paths, "one")
    paths.current.unlink()
    with pytest.raises(RegistryError, match=r"none of the 1 published snapshots .* rollback --catalog .* --to one"):
        read_previous_registry(paths, "recording")
    with pytest.raises(RegistryError, match="has no published snapshot"):
        rebuild_registry(BuildPaths(paths.root / "elsewhere"))


def test_ids_do_not_restart_when_current_names_a_missing_snapshot(paths: BuildPaths) -> None:
    build(paths, "recording", "ab")
    publish(paths, "one")
    paths.snapshots.rename(paths.root / "not-mounted")
    paths.snapshots.mkdir()
    for act in (lambda: require_registry(paths), lambda: read_previous_registry(paths, "recording")):
        with pytest.raises(RegistryError, match=r"current names .*one, which does not exist.*mount or restore"):
            act()


def test_ids_of_a_later_snapshot_with_a_damaged_manifest_are_not_reused(paths: BuildPaths) -> None:
    for name, groups in (("one", ("ab",)), ("two", ("ab", "c", "d"))):
        for kind in KINDS:
            write_table(TABLES[kind], paths.snapshots / name / "tables" / kind, with_ids(kind, len(groups)))
        build(paths, "recording", *groups)
        publish(paths, name)
    make_live(paths, "one")
    (paths.snapshots / "two" / "manifest.json").write_text("{")
    assert read_previous_registry(paths, "recording")[1] == 4


def with_ids(kind: str, largest: int) -> pl.DataFrame:
    """Return rows of a kind's table that hold only ids, 1 to `largest`."""
    nothing = {pl.Int64: 1, pl.Int32: 1, pl.String: "x", pl.Float64: 0.0, pl.Boolean: False, pl.List: [], pl.Date: date(2026, 1, 1)}
    columns = [pl.lit(nothing[dtype.base_type()], dtype=dtype).alias(name) for name, dtype in TABLES[kind].polars_schema.items()]
    return pl.DataFrame({"id": range(1, largest + 1)}).select(*columns, "id").with_columns(pl.col("id").alias(f"{kind}_id")).drop("id")
