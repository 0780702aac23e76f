"""Tests of the changes of a night: share, kinds, repeatability and effects on recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS, SOURCES
from catalog_store.tables import TABLES
from catalog_store.tables.checks import derive_checks, run_check
from catalog_store.tables.files import read_table
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.linkage import link
from pipeline.paths import BuildPaths
from simulator.nightly import BESIDE, DRAWN, write_nightly_changes
from simulator.nightly_tables import KINDS
from tests.simulator.conftest import DAY

if TYPE_CHECKING:
    from pathlib import Path

SHARE = 0.08
"""Far more than a night changes: the world is small and every kind must occur."""


@pytest.fixture(scope="module")
def days(world: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[BuildPaths], list[pl.DataFrame]]:
    """Return four days: as staged, after the eve, after nights 1 and 2; and what the three nights changed."""
    root = tmp_path_factory.mktemp("nights")
    made = [BuildPaths(root / str(day)) for day in range(4)]
    for platform in SOURCES:
        stage_dump(platform, world / platform / DAY, made[0].staging(platform))
    return made, [
        write_nightly_changes(made[night].staging_root, made[night + 1].staging_root, night=night, share=SHARE) for night in range(3)
    ]


def records(paths: BuildPaths) -> pl.DataFrame:
    return pl.concat([read_table(TABLES["source_recording"], folder) for folder in paths.staged("source_recording", CATALOG_PLATFORMS)])


def recordings(paths: BuildPaths) -> dict[str, int]:
    artists = pl.concat([read_table(TABLES["source_artist"], folder) for folder in paths.staged("source_artist", CATALOG_PLATFORMS)])
    return {record: recording for _, record, recording in link(records(paths), artists).iter_rows()}


def changed_in(changes: pl.DataFrame, kind: str) -> list[str]:
    return changes.filter(pl.col("change") == kind)["external_id"].to_list()


def test_night_makes_every_kind_of_change_at_its_share(days: tuple[list[BuildPaths], list[pl.DataFrame]]) -> None:
    for before, changes in zip(days[0][1:], days[1][1:], strict=False):
        linked = changes.filter(pl.col("change") != "ranked")
        assert 0.85 * SHARE < linked.height / records(before).height < 1.15 * SHARE
        assert changes.select("platform", "external_id").is_unique().all()
    assert set(pl.concat(days[1][1:])["change"]) == {*DRAWN, *BESIDE, "joined", "parted", "renamed"}


@pytest.mark.parametrize("name", KINDS)
def test_night_changes_every_column_that_a_kind_names_and_no_other(days: tuple[list[BuildPaths], list[pl.DataFrame]], name: str) -> None:
    key, kinds = KINDS[name]
    key = tuple(column for column in key if not any(column in kind.values for kind in kinds.values()))
    # A night also renames artists and removes the genres of records that are gone.
    known = {column for kind in kinds.values() for column in kind.values} | ({"name"} if name == "source_artist" else set())
    tables = [pl.concat([read_table(TABLES[name], folder) for folder in paths.staged(name, CATALOG_PLATFORMS)]) for paths in days[0][1:3]]
    before, after = (rows.filter(pl.struct(key).is_unique()) for rows in tables)
    pairs = before.join(after, on=key, suffix="_after")
    changed = {
        column: pairs.filter(pl.col(column).ne_missing(pl.col(f"{column}_after"))).height for column in before.columns if column not in key
    }
    assert {column for column, rows in changed.items() if rows} == known
    assert max(changed.values()) < SHARE * pairs.height


def test_reported_changes_are_the_actual_changes(days: tuple[list[BuildPaths], list[pl.DataFrame]]) -> None:
    key = ["platform", "external_id"]
    for (one, other), changes in zip(zip(days[0], days[0][1:], strict=False), days[1], strict=True):
        before, after = records(one), records(other)
        same = before.join(after, on=before.columns, nulls_equal=True, how="semi").select(key)
        touched = pl.concat([before.select(key), after.select(key)]).unique().join(same, on=key, how="anti")
        assert touched.sort(key).equals(changes.select(key))


def test_tables_of_a_night_keep_their_specs_except_intake_counts(days: tuple[list[BuildPaths], list[pl.DataFrame]]) -> None:
    connection = duckdb.connect()
    for platform in CATALOG_PLATFORMS:
        folder = days[0][2].staging(platform)
        for name in ("source_recording", "source_artist", "source_release", "source_release_track", "source_link", "source_genre"):
            for check in derive_checks(TABLES[name], lambda table, folder=folder: folder / table):
                assert run_check(connection, check) == 0, check.description
        gone = days[1][1].filter(pl.col("change") == "removed")
        placed = read_table(TABLES["source_release_track"], folder / "source_release_track")
        assert placed.join(gone, on=["platform", "external_id"], how="semi").is_empty()


def test_equal_nights_give_equal_tables_and_other_nights_others(days: tuple[list[BuildPaths], list[pl.DataFrame]], tmp_path: Path) -> None:
    again, other = BuildPaths(tmp_path / "again"), BuildPaths(tmp_path / "other")
    assert write_nightly_changes(days[0][1].staging_root, again.staging_root, night=1, share=SHARE).equals(days[1][1])
    files = sorted(path.relative_to(again.root) for path in again.root.rglob("*.parquet"))
    assert files
    assert all((again.root / file).read_bytes() == (days[0][2].root / file).read_bytes() for file in files)
    assert not write_nightly_changes(days[0][1].staging_root, other.staging_root, night=5, share=SHARE).equals(days[1][1])


def test_codes_join_and_split_recordings_with_unchanged_records(
    days: tuple[list[BuildPaths], list[pl.DataFrame]],
) -> None:
    before, after = recordings(days[0][1]), recordings(days[0][2])

    def together(linked: dict[str, int], rows: list[str]) -> float:
        pairs = [(row, f"{row}~twin") for row in rows if row in linked and f"{row}~twin" in linked]
        assert len(pairs) > 3
        return sum(linked[row] == linked[twin] for row, twin in pairs) / len(pairs)

    joined, parted = changed_in(days[1][1], "joined"), changed_in(days[1][1], "parted")
    assert together(before, joined) < 0.1
    assert together(after, joined) > 0.8
    assert together(before, parted) > 0.8
    assert together(after, parted) < 0.1


def test_new_artist_splits_the_joined_name_of_an_unchanged_record(
    days: tuple[list[BuildPaths], list[pl.DataFrame]],
) -> None:
    linked, changed = recordings(days[0][2]), set(days[1][1]["external_id"])
    explained = [name.removesuffix("~explained") for name in changed_in(days[1][1], "explained")]
    pairs = [(linked[f"{name}~explained"], linked.get(f"{name}~obscured")) for name in explained if f"{name}~obscured" not in changed]
    assert len(pairs) > 3
    assert sum(one == other for one, other in pairs) / len(pairs) > 0.6
