"""Tests of ids of recordings, artists, labels and releases over builds of one small world that changes every night.

A night here is every step that gives ids, over staged tables, without the checks; a publication of it is what linkage builds on and ids are
remembered by. Where the reader is asked, a night is the whole build and the publication a real one.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store import open_catalog
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.publisher import publish, rollback
from catalog_store.record_keys.content_hash import compute_content_hash
from catalog_store.snapshot import FORMAT, FORMAT_VERSION, Manifest, StoredFile, StoredTable, TablePart, hash_file
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, list_parts, read_table, write_table
from pipeline.build.artists import build_artists
from pipeline.build.labels import build_labels
from pipeline.build.releases import build_releases
from pipeline.defs import catalog_assets, identity_assets
from pipeline.defs.snapshot_assets import PUBLISHED
from pipeline.linkage import stages
from pipeline.linkage.id_registry import KINDS, MEMBERS, RegistryError, collect_registry, rebuild_registry
from pipeline.paths import BuildPaths
from pipeline.run import BuildFailedError, run_build
from pipeline.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.conftest import BuiltWorld

pytestmark = pytest.mark.slow

Ids = dict[str, dict[tuple[str, str], int]]
"""Kind -> source entity -> id."""


@pytest.fixture
def paths(built_world: BuiltWorld, tmp_path: Path) -> BuildPaths:
    """Return the catalog of the shared world, to build upon."""
    shutil.copytree(built_world.catalog, tmp_path / "catalog", symlinks=True)
    return BuildPaths(tmp_path / "catalog")


def live_ids(paths: BuildPaths) -> Ids:
    return ids_below({kind: paths.current / "tables" / MEMBERS[kind] for kind in KINDS})


def ids_below(folders: Mapping[str, Path]) -> Ids:
    tables = {kind: read_table(TABLES[MEMBERS[kind]], folder) for kind, folder in folders.items()}
    return {kind: {(platform, name): entity for platform, name, entity in rows.iter_rows()} for kind, rows in tables.items()}


def link(paths: BuildPaths, buckets: int | None = None) -> dict[tuple[str, str], int]:
    """Run linkage alone and return the ids of recordings."""
    stages.write_atoms(paths, buckets=buckets)
    stages.write_edges(paths, buckets=buckets)
    stages.write_clusters(paths)
    stages.write_recording_ids(paths)
    return ids_below({"recording": paths.table("recording_member")})["recording"]


def night(paths: BuildPaths, name: str) -> Ids:
    """Run every step that gives ids, and publish the result as `name`."""
    link(paths)
    build_artists(paths)
    build_labels(paths)
    build_releases(paths)
    lay_down(paths, name)
    return live_ids(paths)


def lay_down(paths: BuildPaths, name: str) -> None:
    """Write the parts of a publication that the next night needs: tables, manifest, `current`."""
    next_ids, folder, stored = collect_registry(paths), paths.snapshots / name, {}
    for table in (table for table in PUBLISHED if paths.table(table.name).is_dir()):
        shutil.copytree(paths.table(table.name), folder / "tables" / table.name)
        files = [
            TablePart(str(path.relative_to(folder)), 0, path.stat().st_size, hash_file(path))
            for path in list_parts(folder / "tables" / table.name)
        ]
        stored[table.name] = StoredTable(count_rows(folder / "tables" / table.name), 0, tuple(files))
    manifest = Manifest(FORMAT, FORMAT_VERSION, name, "2030-01-01T00:00:00Z", "x", stored, next_ids, StoredFile("x", 0, ""), ())
    (folder / "manifest.json").write_bytes(manifest.encode())
    paths.current.unlink(missing_ok=True)
    paths.current.symlink_to(folder.relative_to(paths.root))


def rewrite(paths: BuildPaths, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Change a staging table on every platform that has it."""
    for folder in paths.staged(name, CATALOG_PLATFORMS):
        write_table(TABLES[name], folder, [change(read_table(TABLES[name], folder))])


def redirects(paths: BuildPaths) -> dict[tuple[str, int], int | None]:
    return {(kind, old): new for kind, old, new in read_table(TABLES["redirect"], paths.current / "tables" / "redirect").iter_rows()}


def lost(before: Ids, after: Ids, paths: BuildPaths) -> list[tuple[str, int]]:
    """Return ids that are neither in use nor redirect to one in use."""
    live = {(kind, entity) for kind, given in after.items() for entity in given.values()}
    ends = {old: (old[0], new) for old, new in redirects(paths).items()}
    return [
        (kind, entity) for kind in before for entity in set(before[kind].values()) if ends.get((kind, entity), (kind, entity)) not in live
    ]


def test_reordered_input_and_any_number_of_buckets_leave_every_id(paths: BuildPaths) -> None:
    before = live_ids(paths)
    for name in ("source_recording", "source_artist", "source_release", "source_label", "source_link", "source_release_track"):
        rewrite(paths, name, lambda rows: rows.sample(fraction=1, shuffle=True, seed=4))
    paths.relink.touch()
    assert link(paths, buckets=5) == before["recording"]
    assert night(paths, "shuffled") == before
    assert redirects(paths) == {}


def test_a_removed_platform_takes_no_id_along_and_finds_its_own_when_it_returns(paths: BuildPaths) -> None:
    before = live_ids(paths)
    away = paths.root / "away"
    paths.staging("streamsvc_a").rename(away)
    without = night(paths, "without")
    for kind in KINDS:
        stayed = [entity for entity in without[kind] if without[kind][entity] == before[kind][entity]]
        assert len(stayed) >= 0.97 * len(without[kind]), kind
    merged = {(kind, entity) for (kind, old), new in redirects(paths).items() if new is not None for entity in (old, new)}
    away.rename(paths.staging("streamsvc_a"))
    back = night(paths, "back")
    for kind in KINDS:
        assert sum((kind, entity) in merged for entity in before[kind].values()) <= 0.01 * len(before[kind]), kind
        # A recording that was merged meanwhile splits when the platform is back: the larger part keeps the id.
        apart = {name for name, entity in before[kind].items() if (kind, entity) not in merged}
        assert {name: back[kind][name] for name in apart} == {name: before[kind][name] for name in apart}, kind
        assert back[kind].keys() == before[kind].keys(), kind
    assert lost(before, back, paths) == []


def test_an_added_platform_leaves_ids_and_leads_from_those_that_it_makes_one(paths: BuildPaths) -> None:
    shutil.rmtree(paths.snapshots)
    paths.current.unlink()
    away = paths.root / "away"
    paths.staging("streamsvc_c").rename(away)
    before = night(paths, "without")
    away.rename(paths.staging("streamsvc_c"))
    after = night(paths, "with")
    for kind in KINDS:
        stayed = [entity for entity in before[kind] if after[kind].get(entity) == before[kind][entity]]
        assert len(stayed) >= 0.97 * len(before[kind]), kind
    assert [entity for kind, entity in lost(before, after, paths) if kind in ("recording", "release")] == []
    assert any(platform == "streamsvc_c" for platform, _ in after["recording"])


def test_a_renamed_artist_keeps_id_and_recordings(paths: BuildPaths) -> None:
    before = live_ids(paths)
    credited = pl.concat([read_table(TABLES["source_recording"], folder) for folder in paths.staged("source_recording", CATALOG_PLATFORMS)])
    people = credited.select("platform", person=pl.col("artists").list.first()).unnest("person").drop_nulls("artist_id")
    ambiguous = people.unique(["platform", "artist_id", "name"]).filter(pl.struct("platform", "name").is_duplicated())["name"]
    busiest = people.filter(~pl.col("name").is_in(ambiguous.implode())).group_by("name").agg(pl.len(), pl.col("platform").n_unique())
    name = busiest.sort("platform", "len", "name", descending=True)["name"][0]

    was_credited = credited_as(paths.current / "tables" / "source_credit", name)
    assert was_credited

    def renamed(rows: pl.DataFrame) -> pl.DataFrame:
        one = pl.element().struct.with_fields(pl.field("name").replace(name, "The Quite Other Ensemble"))
        rows = rows.with_columns(artists=pl.col("artists").list.eval(one))
        if "artist_credit" in rows.columns:
            rows = rows.with_columns(pl.col("artist_credit").str.replace(name, "The Quite Other Ensemble", literal=True))
        return rows.with_columns(content_hash=compute_content_hash()) if "content_hash" in rows.columns else rows

    rewrite(paths, "source_recording", renamed)
    rewrite(paths, "source_release", renamed)
    rewrite(paths, "source_artist", lambda rows: rows.with_columns(pl.col("name").replace(name, "The Quite Other Ensemble")))
    after = night(paths, "renamed")
    assert after["recording"] == before["recording"]
    known = [entity for entity in before["artist"] if not entity[1].startswith("name:")]
    assert [entity for entity in known if after["artist"].get(entity) != before["artist"][entity]] == []
    assert credited_as(paths.table("source_credit"), "The Quite Other Ensemble") == was_credited


def credited_as(folder: Path, name: str) -> set[int]:
    return set(read_table(TABLES["source_credit"], folder).filter(pl.col("name") == name)["artist_id"])


def test_a_lost_registry_stops_the_night_and_rebuilt_gives_every_id_again(paths: BuildPaths) -> None:
    before = live_ids(paths)
    table = paths.current / "tables" / "id_registry"
    whole = read_table(TABLES["id_registry"], table)
    shutil.rmtree(table)
    with pytest.raises(RegistryError, match="registry rebuild"):
        night(paths, "never")
    with pytest.raises(BuildFailedError, match="registry rebuild"):
        run_build(Settings(root=paths.root, dumps=paths.root))
    assert rebuild_registry(paths)["rebuilt"]
    rebuilt = paths.root / "work" / "registry" / "rebuilt" / paths.current.resolve().name / "id_registry"
    assert read_table(TABLES["id_registry"], rebuilt).equals(whole)
    assert night(paths, "again") == before
    assert read_table(TABLES["id_registry"], paths.current / "tables" / "id_registry").equals(whole)


def test_a_rollback_and_a_build_give_no_id_twice(paths: BuildPaths) -> None:
    first = paths.current.resolve().name
    before = live_ids(paths)
    keep = {platform: read_table(TABLES["source_recording"], folder) for platform, folder in record_folders(paths).items()}
    for platform, rows in keep.items():
        add_records(paths, platform, rows, "night two")
    link(paths)
    lay_down(paths, "two")
    second = live_ids(paths)["recording"]
    rollback_to(paths, first)
    for platform, rows in keep.items():
        add_records(paths, platform, rows, "night three")
    third = link(paths)
    assert {record: third[record] for record in before["recording"]} == before["recording"]
    given = [set(ids.values()) - set(before["recording"].values()) for ids in (second, third)]
    assert all(given)
    assert not given[0] & given[1]


def record_folders(paths: BuildPaths) -> dict[str, Path]:
    return {folder.parent.name: folder for folder in paths.staged("source_recording", CATALOG_PLATFORMS)}


def add_records(paths: BuildPaths, platform: str, rows: pl.DataFrame, title: str) -> None:
    """Write the platform's rows and one more."""
    more = rows.head(1).with_columns(
        external_id=pl.lit(f"new {title}"), title=pl.lit(title), isrcs=pl.lit([], dtype=pl.List(pl.String)), duration_ms=pl.lit(99_000)
    )
    more = more.with_columns(content_hash=compute_content_hash())
    write_table(TABLES["source_recording"], record_folders(paths)[platform], [pl.concat([rows, TABLES["source_recording"].conform(more)])])


def rollback_to(paths: BuildPaths, name: str) -> None:
    rollback(paths.root, name)
    assert paths.current.resolve().name == name


def test_a_reviewed_merge_redirects_for_the_reader_and_taken_back_gives_the_id_again(paths: BuildPaths) -> None:
    before = live_ids(paths)["recording"]
    held: dict[int, list[tuple[str, str]]] = {}
    for record, entity in before.items():
        if record[0] in ("streamsvc_a", "streamsvc_b", "streamsvc_c"):
            held.setdefault(entity, []).append(record)
    small, large = sorted((entity for entity in held), key=lambda entity: (len(held[entity]), entity))[:: len(held) - 1]
    one, other = (":".join(held[entity][0]) for entity in (small, large))
    paths.overrides.write_text(f"- must_link: [{one!r}, {other!r}]\n  why: a test\n  by: t\n  on: 2026-03-01\n")
    link(paths)
    for step in (*identity_assets.list_steps(), *catalog_assets.list_steps()):
        step.run(paths)
    next_ids = collect_registry(paths)
    tables = {table.name: paths.table(table.name) for table in PUBLISHED}
    publish(tables, paths.root, snapshot_id="merged", next_ids=next_ids)
    with open_catalog(paths.root) as catalog:
        assert catalog.resolve_id(small) == large
        assert catalog.read_track_body(small) is None
        assert catalog.find_ids_by_external(*held[small][0])[0] == large
    paths.overrides.unlink()
    assert link(paths) == before
