from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table
from pipeline.linkage import group_ids, record_ids
from pipeline.linkage.id_registry import KINDS, collect_registry, get_work_folder, read_previous_registry, save_assignment
from pipeline.linkage.id_rules import assign_ids
from pipeline.linkage.record_ids import RecordIds, sort_by_external_id
from pipeline.linkage.recording_tables import write_all_recordings
from pipeline.paths import BuildPaths
from tests.pipeline.linkage.worlds import write_manifest

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

SOURCE = ["platform", "external_id"]


def made_up(night: int, records: int = 400, moved: int = 9) -> pl.DataFrame:
    """Return platform, external_id, atom_id, group. `moved` percent of the records change their group; each night others are absent."""
    number = pl.int_range(records, dtype=pl.Int64, eager=True).alias("number")
    noise = number.hash(seed=night) % 100
    rows = number.to_frame().with_columns(noise=noise)
    long = pl.lit("the-same-sixteen-bytes-") + pl.col("number").cast(pl.String)
    return rows.filter(pl.col("noise") > 3).select(
        platform=pl.col("number").mod(5).replace_strict(dict(enumerate(CATALOG_PLATFORMS[:5])), return_dtype=pl.String),
        external_id=pl.when(pl.col("number") % 3 == 0).then(long).otherwise((pl.col("number") * 7919).cast(pl.String)),
        atom_id="number",
        group=pl.col("number") // 4 + pl.when(pl.col("noise") > 99 - moved).then(3).otherwise(0),
    )


def assign(paths: BuildPaths, rows: pl.DataFrame) -> RecordIds:
    """Assign ids to `atom_member` in three parts, in the order of atoms, and `cluster`; no atom claims a code."""
    third = rows.height // 3 + 1
    frames = [rows[start : start + third].select(*SOURCE, "atom_id", content_hash="atom_id") for start in range(0, rows.height, third)]
    write_table(TABLES["atom_member"], paths.table("atom_member"), frames)
    write_table(TABLES["atom"], paths.table("atom"), TABLES["atom"].build_empty())
    write_table(TABLES["atom_isrc"], paths.table("atom_isrc"), TABLES["atom_isrc"].build_empty())
    write_table(TABLES["cluster"], paths.table("cluster"), rows.select("atom_id", cluster_id="group").unique())
    return write_all_recordings(paths)


def publish(paths: BuildPaths, name: str) -> None:
    next_ids = collect_registry(paths)
    for table in ("id_registry", "redirect", *(["recording_member"] if paths.table("recording_member").is_dir() else [])):
        write_table(TABLES[table], paths.snapshots / name / "tables" / table, [read_table(TABLES[table], paths.table(table))])
    write_manifest(paths.snapshots / name, next_ids)
    paths.current.unlink(missing_ok=True)
    paths.current.symlink_to(paths.snapshots / name)


def test_ranges_give_the_ids_of_one_assignment_over_all_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, ranged = BuildPaths(tmp_path / "whole"), BuildPaths(tmp_path / "ranged")
    monkeypatch.setattr(record_ids, "ROWS_PER_RANGE", 50)
    monkeypatch.setattr(group_ids, "VOTES_PER_BUCKET", 50)
    for name, table in TABLES.items():
        monkeypatch.setitem(TABLES, name, replace(table, rows_per_part=9))
    for night in range(1, 5):
        rows = made_up(night)
        rows = rows.filter(pl.col("platform") != "catalog_b") if night == 2 else rows
        known, next_id = read_previous_registry(whole, "recording")
        key = pl.concat_str("platform", pl.lit(":"), "external_id")
        expected = assign_ids(rows.select("group", source_key=key), known, next_id)
        save_assignment(get_work_folder(whole, "recording"), "recording", expected)
        found = assign(ranged, rows)
        for paths in (whole, ranged):
            publish(paths, f"night-{night}")

        assert (found.new_ids, found.redirects) == (expected.next_id - next_id, expected.redirects.height)
        member = rows.join(expected.ids, on="group").select(*SOURCE, recording_id="entity_id").sort(SOURCE)
        assert read_table(TABLES["recording_member"], ranged.table("recording_member")).equals(member)
        registries = [read_previous_registry(paths, "recording") for paths in (whole, ranged)]
        assert registries[0][0].keys.equals(registries[1][0].keys)
        assert registries[0][0].links.equals(registries[1][0].links)
        assert registries[0][1] == registries[1][1]
        one, other = (read_table(TABLES["redirect"], paths.table("redirect")) for paths in (whole, ranged))
        assert one.equals(other)
    assert expected.redirects.height > 5
    assert len(list(ranged.table("id_registry").iterdir())) > len(KINDS)
    assert not (ranged.root / "work" / "linkage" / "record_ids.spill").exists()


def test_no_step_holds_more_rows_than_a_range_or_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    largest: dict[str, int] = {}

    def count_rows(module: ModuleType, name: str) -> None:
        called = getattr(module, name)

        def count(rows: pl.DataFrame, *others: object) -> object:
            largest[name] = max(largest.get(name, 0), rows.height)
            return called(rows, *others)

        monkeypatch.setattr(module, name, count)

    monkeypatch.setattr(record_ids, "ROWS_PER_RANGE", 200)
    monkeypatch.setattr(group_ids, "VOTES_PER_BUCKET", 200)
    for module, name in ((record_ids, "match_members"), (record_ids, "assign_homes"), (group_ids, "count_votes"), (group_ids, "settle")):
        count_rows(module, name)
    for night in (1, 2):
        largest.clear()
        rows = made_up(night, 4_000, moved=1)
        assign(BuildPaths(tmp_path), rows)
        publish(BuildPaths(tmp_path), f"night-{night}")
        # All groups that share an id with another are settled together, so most groups must not share one.
        assert set(largest) == {"match_members", "assign_homes", "count_votes", "settle"}
        assert max(largest.values()) < 500, largest


def test_no_records_give_empty_tables(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    assert assign(paths, made_up(1).clear()) == (0, 0)
    assert read_table(TABLES["recording_member"], paths.table("recording_member")).is_empty()


def test_repeated_record_is_rejected(tmp_path: Path) -> None:
    rows = made_up(1, 30)
    with pytest.raises(ValueError, match="is a member twice"):
        assign(BuildPaths(tmp_path), pl.concat([rows, rows.tail(1)]))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.text(alphabet="ab0é中", min_size=1, max_size=3).map(lambda end: "0123456789abcdef"[: 17 - len(end)] + end) | st.text(max_size=5),
        unique=True,
    )
)
def test_fast_sort_gives_the_order_of_the_strings(names: list[str]) -> None:
    rows = pl.DataFrame({"external_id": names, "group": range(len(names))}, schema={"external_id": pl.String, "group": pl.Int64})
    assert sort_by_external_id(rows).equals(rows.sort("external_id"))
