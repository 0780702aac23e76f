from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.linkage import group_ids
from pipeline.linkage.id_registry import get_work_folder, read_next_ids, read_previous_registry, save_assignment
from pipeline.linkage.id_rules import assign_ids
from pipeline.linkage.sorted_ids import assign_sorted_members
from pipeline.paths import BuildPaths
from tests.pipeline.linkage.test_record_ids import publish

if TYPE_CHECKING:
    from pathlib import Path

PLATFORMS = ("catalog_a", "catalog_b", "name", "store_a")
"""Links sort between the second and the third."""


def make_members(night: int, count: int = 300) -> pl.DataFrame:
    """Return node, group, source_key in order of keys. Some change their group, and each night others are absent."""
    number = pl.int_range(count, dtype=pl.Int64, eager=True).alias("number")
    rows = number.to_frame().with_columns(noise=number.hash(seed=night) % 100).filter(pl.col("noise") > 3)
    platform = pl.col("number").mod(4).replace_strict(dict(enumerate(PLATFORMS)), return_dtype=pl.String)
    keys = pl.concat_str(platform, pl.lit(":"), pl.col("number").cast(pl.String))
    group = pl.col("number") // 4 + pl.when(pl.col("noise") > 90).then(3).otherwise(0)
    return rows.select(source_key=keys, group=group).sort("source_key").with_row_index("node", 1).cast({"node": pl.Int64})


@pytest.mark.parametrize("rows_per_block", [7, 1_000])
def test_blocks_give_the_ids_and_the_registry_of_one_assignment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_block: int
) -> None:
    monkeypatch.setattr(group_ids, "VOTES_PER_BUCKET", 40)
    whole, blocks = BuildPaths(tmp_path / "whole"), BuildPaths(tmp_path / "blocks")
    linked = 0
    for night in range(1, 4):
        members = make_members(night)
        expected = assign_ids(members.select("group", "source_key"), *read_previous_registry(whole, "release"))
        save_assignment(get_work_folder(whole, "release"), "release", expected)
        found = pl.concat(assign_sorted_members(blocks, "release", members.height, members.iter_slices(rows_per_block)))
        assert found.equals(members.join(expected.ids, on="group", maintain_order="left").select("node", "entity_id"))
        for table in ("id_registry", "redirect"):
            one, other = (read_table(TABLES[table], get_work_folder(paths, "release") / table) for paths in (whole, blocks))
            assert one.equals(other)
        for paths in (whole, blocks):
            publish(paths, f"night-{night}")
        assert read_next_ids(blocks) == read_next_ids(whole)
        linked = max(linked, expected.registry.links.height)
    assert linked > 3
    assert not list((blocks.root / "work" / "linkage").glob("*.spill"))


def test_no_members_give_no_ids(tmp_path: Path) -> None:
    (found,) = assign_sorted_members(BuildPaths(tmp_path), "label", 0, [])
    assert found.is_empty()
    assert read_table(TABLES["id_registry"], get_work_folder(BuildPaths(tmp_path), "label") / "id_registry").is_empty()


def test_keys_out_of_order_are_rejected(tmp_path: Path) -> None:
    members = make_members(1)
    for blocks in ([members.reverse()], [members[100:], members[:100]]):
        with pytest.raises(ValueError, match="are not in order"):
            list(assign_sorted_members(BuildPaths(tmp_path), "label", members.height, blocks))
