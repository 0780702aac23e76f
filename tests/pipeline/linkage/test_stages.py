"""Tests of the stages of linkage: equal tables for any number of buckets, lasting ids, errors that name records."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from catalog_store.folder_listing import list_folder
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES
from catalog_store.tables.checks import derive_checks, run_check
from catalog_store.tables.files import count_rows, list_parts, read_table, write_table
from pipeline.engine.checkpoints import use_token
from pipeline.linkage import (
    alias_owners,
    atom_tables,
    atoms,
    clusters,
    edge_evidence,
    found_edges,
    group_ids,
    guards,
    link,
    name_cache,
    normal_forms,
    position_edges,
    record_ids,
    recording_tables,
    release_alignment,
    release_mates,
    sound_edges,
    staged_records,
    stages,
    version_edges,
)
from pipeline.linkage import credits as credits_
from pipeline.linkage.failing_records import LinkageError
from pipeline.linkage.id_registry import collect_registry
from pipeline.linkage.mapped_atoms import get_mapped_folder
from pipeline.paths import BuildPaths
from tests.pipeline.linkage.worlds import Records, made_up_world, partition, write_manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

WRITTEN = ("atom", "atom_member", "atom_isrc", "edge", "audio_comparison", "cluster", "recording_member", "isrc_owner", "isrc_conflict")


def stage(paths: BuildPaths, records: pl.DataFrame, links: pl.DataFrame | None = None) -> BuildPaths:
    """Write records as staging tables, a folder for each platform."""
    for platform in CATALOG_PLATFORMS:
        rows = records.filter(pl.col("platform") == platform)
        if rows.height:
            with_table = paths.staging(platform)
            write_table(TABLES["source_recording"], with_table / "source_recording", [rows])
            if links is not None:
                write_table(TABLES["source_link"], with_table / "source_link", links.filter(pl.col("platform") == platform))
    return paths


def build(paths: BuildPaths, buckets: int | None = None) -> dict[str, pl.DataFrame]:
    stages.write_atoms(paths, buckets=buckets)
    stages.write_edges(paths, buckets=buckets)
    stages.write_clusters(paths)
    stages.write_recording_ids(paths)
    return {name: read_table(TABLES[name], paths.table(name)) for name in WRITTEN}


@pytest.fixture(scope="module")
def world() -> pl.DataFrame:
    return made_up_world(seed=5, songs=150)[0]


@pytest.fixture(scope="module")
def built(world: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> tuple[BuildPaths, dict[str, pl.DataFrame]]:
    paths = stage(BuildPaths(tmp_path_factory.mktemp("build")), world)
    return paths, build(paths)


def test_stages_and_link_in_memory_agree(world: pl.DataFrame, built: tuple[BuildPaths, dict[str, pl.DataFrame]]) -> None:
    assert built[1]["recording_member"].equals(link(world))


def test_stages_and_link_in_memory_agree_on_records_under_the_code_of_a_version(tmp_path: Path) -> None:
    records, expected = Records(), set[frozenset[str]]()
    for title, seconds, groups in (("Roses", 312, [{"song"}, {"remix", "bare"}]), ("Lilies", None, [{"song"}, {"remix"}, {"bare"}])):
        records.add(f"song {title}", title, isrcs=f"GBABC20{len(title):05}")
        records.add(f"remix {title}", f"{title} (Imanbek Remix)", isrcs=f"GBABC21{len(title):05}", seconds=312)
        records.add(f"bare {title}", title, platform="streamsvc_b", isrcs=f"GBABC21{len(title):05}", seconds=seconds)
        expected |= {frozenset(f"{name} {title}" for name in group) for group in groups}
    found = build(stage(BuildPaths(tmp_path), records.frame()))["recording_member"]
    assert found.equals(link(records.frame()))
    assert partition(found) == expected


def test_every_table_keeps_its_spec(built: tuple[BuildPaths, dict[str, pl.DataFrame]]) -> None:
    paths, tables = built
    collect_registry(paths)
    connection = duckdb.connect()
    for table in (TABLES[name] for name in (*WRITTEN, "id_registry")):
        for check in derive_checks(table, paths.table):
            assert run_check(connection, check) == 0, check.description
    for name, frame in tables.items():
        order = frame.select(TABLES[name].order)
        assert order.equals(order.sort(TABLES[name].order)), name


def test_tables_are_the_same_for_any_number_of_buckets_and_any_order_of_rows(
    world: pl.DataFrame, built: tuple[BuildPaths, dict[str, pl.DataFrame]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged_records, "ROWS_PER_SLICE", 97)
    monkeypatch.setattr(name_cache, "NAMES_PER_MERGE", 20)
    monkeypatch.setattr(alias_owners, "NAMES_PER_PIECE", 7)
    monkeypatch.setattr(edge_evidence, "PAIRS_PER_PIECE", 3)
    monkeypatch.setattr(found_edges, "EDGES_PER_RUN", 7)
    monkeypatch.setattr(position_edges, "ROWS_AT_A_TIME", 3)
    monkeypatch.setattr(sound_edges, "ATOMS_AT_A_TIME", 2)
    monkeypatch.setattr(version_edges, "CLAIMS_AT_A_TIME", 30)
    monkeypatch.setattr(release_mates, "ROWS_AT_A_TIME", 50)
    monkeypatch.setattr(release_alignment, "PAIRS_AT_A_TIME", 2)
    monkeypatch.setattr(release_alignment, "TITLES_AT_A_TIME", 10)
    monkeypatch.setattr(record_ids, "ROWS_PER_RANGE", 80)
    monkeypatch.setattr(group_ids, "VOTES_PER_BUCKET", 80)
    monkeypatch.setattr(recording_tables, "CLAIMS_PER_RANGE", 60)
    monkeypatch.setattr(recording_tables, "_SAMPLE_STEP", 3)
    monkeypatch.setitem(TABLES, "cluster", replace(TABLES["cluster"], rows_per_part=70))
    shuffled = stage(BuildPaths(tmp_path), world.sample(fraction=1, shuffle=True, seed=3))
    for name, frame in build(shuffled, buckets=7).items():
        assert frame.equals(built[1][name]), name
    assert len(list_parts(shuffled.table("cluster"))) > 1


def test_atoms_of_a_killed_step_go_on_at_the_last_slice_or_bucket(
    world: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged_records, "ROWS_PER_SLICE", 197)
    paths, unbroken = (stage(BuildPaths(tmp_path / name), world) for name in ("killed", "unbroken"))
    stages.write_atoms(unbroken, buckets=3)
    calls: list[str] = []
    kill_at: list[tuple[str, int]] = []

    def count_calls(name: str) -> Callable[..., object]:
        work = getattr(atom_tables, name)

        def call(*arguments: object) -> object:
            calls.append(name)
            if (name, calls.count(name)) in kill_at:
                raise MemoryError("killed")
            return work(*arguments)

        return call

    steps = ("_normalise_slice", "write_atom_parts", "join_atom_parts")
    for name in steps:
        monkeypatch.setattr(atom_tables, name, count_calls(name))
    worked = []
    with use_token("night"):
        # The second step is killed in its second bucket, the third one while it joins them.
        for moment in (("_normalise_slice", 2), ("write_atom_parts", 2), ("join_atom_parts", 1)):
            kill_at[:] = [moment]
            with pytest.raises(MemoryError):
                stages.write_atoms(paths, buckets=3)
            worked.append([calls.count(name) for name in steps])
            calls.clear()
        kill_at.clear()
        stages.write_atoms(paths, buckets=3)
    slices = len(list(staged_records.cut_slices(paths)))
    assert worked == [[2, 0, 0], [slices - 1, 2, 0], [0, 2, 1]]
    assert calls == ["join_atom_parts"]
    for name in ATOM_TABLES:
        assert [part.read_bytes() for part in list_parts(paths.table(name))] == [
            part.read_bytes() for part in list_parts(unbroken.table(name))
        ]
    mapped = [[file.name for file in list_folder(get_mapped_folder(of))] for of in (paths, unbroken)]
    assert mapped[0] == mapped[1] != []
    assert list_folder(paths.root / "work" / "linkage", "*.spill") == []


def test_no_two_recordings_own_a_code_and_every_claim_is_kept_or_in_conflict(
    world: pl.DataFrame, built: tuple[BuildPaths, dict[str, pl.DataFrame]]
) -> None:
    tables = built[1]
    claims = world.select("platform", "external_id", isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls()
    claims = claims.join(tables["recording_member"], on=["platform", "external_id"]).select("isrc", "recording_id").unique()
    kept = pl.concat([tables["isrc_owner"].select("isrc", "recording_id"), tables["isrc_conflict"].select("isrc", "recording_id")])
    assert kept.sort("isrc", "recording_id").equals(claims.sort("isrc", "recording_id"))
    assert tables["isrc_owner"]["isrc"].is_unique().all()
    assert tables["isrc_conflict"].height > 0


def test_edge_of_weak_signals_names_each_signal_and_its_bits(tmp_path: Path) -> None:
    records = Records().add("a", "Nothing Else Matters", "Apocalyptica Quartet")
    records.add("b", "Nothng Else Mattres", "Apocaliptica Quartet", platform="store_a", seconds=200.4)
    tables = build(stage(BuildPaths(tmp_path), records.frame()))
    (edge,) = tables["edge"].iter_rows(named=True)
    assert edge["kind"] == "weak"
    assert 0.98 < edge["score"] < 1
    assert "nothngelsemattres" in edge["evidence"]
    assert re.search(r"title [0-9.]+, artist [0-9.]+, length 6.0, album 0.0, .* = [0-9.]+ bits$", edge["evidence"])


def test_cross_link_joins_misspelt_records_unless_variants_contradict(tmp_path: Path) -> None:
    records = Records().add("a", "Yesterday", "Singer").add("b", "Yisterdiy", "Singer Orchestra", platform="catalog_b")
    records.add("c", "Another Song - Live").add("d", "Another Song", platform="catalog_b")
    links = [
        {
            "platform": "catalog_b",
            "entity_kind": "recording",
            "entity_id": entity,
            "target_platform": "streamsvc_a",
            "target_id": target,
            "target_kind": "recording",
            "url": "u",
        }
        for entity, target in (("b", "a"), ("d", "c"), ("b", "unknown"))
    ]
    paths = stage(BuildPaths(tmp_path), records.frame(), TABLES["source_link"].conform(pl.DataFrame(links)))
    tables = build(paths)
    assert partition(tables["recording_member"]) == {frozenset("ab"), frozenset("c"), frozenset("d")}
    assert tables["edge"].select("kind", "evidence").rows() == [("link", "catalog_b:b -> streamsvc_a:a")]
    assert records.linked() == {frozenset("a"), frozenset("b"), frozenset("c"), frozenset("d")}


def test_build_without_records_writes_empty_tables(tmp_path: Path) -> None:
    empty = BuildPaths(tmp_path)
    write_table(TABLES["source_recording"], empty.staging("store_a") / "source_recording", TABLES["source_recording"].build_empty())
    assert all(frame.is_empty() for frame in build(empty).values())


def publish(paths: BuildPaths, name: str) -> None:
    """Publish the registry."""
    next_ids = collect_registry(paths)
    tables = paths.snapshots / name / "tables"
    for table in ("id_registry", "recording_member", "redirect"):
        write_table(TABLES[table], tables / table, read_table(TABLES[table], paths.table(table)))
    write_manifest(tables.parent, next_ids)
    paths.current.unlink(missing_ok=True)
    paths.current.symlink_to(paths.snapshots / name)


def ids_of(tables: dict[str, pl.DataFrame]) -> dict[tuple[str, str], int]:
    return {(platform, external): recording for platform, external, recording in tables["recording_member"].iter_rows()}


@pytest.mark.slow
def test_ids_survive_reordered_records_a_new_platform_and_its_removal_and_return(world: pl.DataFrame, tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    without = world.filter(pl.col("platform") != "streamsvc_b")
    first = ids_of(build(stage(paths, without)))
    publish(paths, "one")
    again = ids_of(build(stage(paths, without.reverse())))
    assert again == first
    added = ids_of(build(stage(paths, world)))
    publish(paths, "two")
    kept = sum(added[record] == recording for record, recording in first.items())
    assert kept >= 0.995 * len(first)
    for part in (paths.staging("streamsvc_b") / "source_recording").iterdir():
        part.unlink()
    write_table(TABLES["source_recording"], paths.staging("streamsvc_b") / "source_recording", TABLES["source_recording"].build_empty())
    build(paths)
    publish(paths, "three")
    assert ids_of(build(stage(paths, world))) == added


def test_records_that_cannot_be_compared_are_named_by_platform_and_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = ["GBDUW0000059"]
    records = Records()
    for number, title in enumerate(["One", "One", "Odd", "Another"]):
        records.add(f"id{number}", title, "Someone", platform=CATALOG_PLATFORMS[number], isrcs=code, seconds=100 + 20 * number)
    paths = stage(BuildPaths(tmp_path), records.frame())
    stages.write_atoms(paths)
    similarity = guards.measure_similarity

    def fails_on_one(one: pl.Series, other: pl.Series) -> pl.Series:
        if "odd" in {*one, *other}:
            raise pl.exceptions.ComputeError("too long to be compiled")
        return similarity(one, other)

    with monkeypatch.context() as patch:
        patch.setattr(guards, "measure_similarity", fails_on_one)
        with pytest.raises(LinkageError, match=r"too long to be compiled") as caught:
            stages.write_edges(paths)
    assert f"{CATALOG_PLATFORMS[2]}:id2" in str(caught.value)
    stages.write_edges(paths)
    assert count_rows(paths.table("edge")) >= 0


def staged_with_one_odd(folder: Path) -> tuple[BuildPaths, str]:
    """Return four records and the name of the third, which differs from the others in title, artist and version."""
    records = Records()
    for number, (title, artist) in enumerate([("One", "Someone"), ("Two", "Someone"), ("Odd (Live)", "Oddity"), ("Another", "Else")]):
        records.add(f"id{number}", title, artist, platform=CATALOG_PLATFORMS[number])
    return stage(BuildPaths(folder), records.frame()), f"{CATALOG_PLATFORMS[2]}:id2"


def failing_on_odd(function: Callable[..., object], *, texts: Callable[..., pl.Series]) -> Callable[..., object]:
    """Return the function, failing if a text of its arguments begins with `odd`."""

    def fails(*arguments: object) -> object:
        if texts(*arguments).str.to_lowercase().str.starts_with("odd").any():
            raise pl.exceptions.ComputeError("too long to be compiled")
        return function(*arguments)

    return fails


@pytest.mark.parametrize(
    ("module", "name", "texts"),
    [
        (normal_forms, "build_title_keys_frame", lambda titles: titles),
        (credits_, "build_name_key_series", lambda names, _folded: names),
        (atoms, "part_namesakes", lambda _placed, records: records["title_key"]),
    ],
)
def test_record_that_cannot_be_read_is_named_by_platform_and_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, texts: Callable[..., pl.Series]
) -> None:
    paths, odd = staged_with_one_odd(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, failing_on_odd(getattr(module, name), texts=texts))
        with pytest.raises(LinkageError, match=rf": {odd} \(ComputeError: too long to be compiled\)"):
            stages.write_atoms(paths)
    stages.write_atoms(paths)
    assert count_rows(paths.table("atom")) == 4


def test_new_record_that_cannot_be_read_is_named(tmp_path: Path, world: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = stage(BuildPaths(tmp_path), world)
    build(paths)
    publish(paths, "one")
    odd = Records().add("odd", "Odd", "Someone", platform=CATALOG_PLATFORMS[0]).frame()
    stage(paths, pl.concat([world, odd]))
    monkeypatch.setattr(
        normal_forms, "build_title_keys_frame", failing_on_odd(normal_forms.build_title_keys_frame, texts=lambda titles: titles)
    )
    with pytest.raises(LinkageError, match=rf": {CATALOG_PLATFORMS[0]}:odd \(ComputeError"):
        stages.write_atoms(paths)


def test_cluster_that_cannot_be_examined_is_named_by_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, odd = staged_with_one_odd(tmp_path)
    stages.write_atoms(paths)
    ids = {variant: atom for atom, variant in read_table(TABLES["atom"], paths.table("atom")).select("atom_id", "variant").iter_rows()}
    low, high = sorted((ids["live"], ids[""]))
    edge = {"atom_id_a": low, "atom_id_b": high, "kind": "typo", "score": 1.0, "evidence": "GBDUW0000059"}
    write_table(TABLES["edge"], paths.table("edge"), TABLES["edge"].conform(pl.DataFrame([edge])))
    write_table(TABLES["audio_comparison"], paths.table("audio_comparison"), TABLES["audio_comparison"].build_empty())

    def fails(_one: str, _other: str) -> bool:
        raise KeyError("live")

    monkeypatch.setattr(clusters, "can_be_one_recording", fails)
    with pytest.raises(LinkageError, match=r"KeyError: 'live'") as caught:
        stages.write_clusters(paths)
    assert odd in str(caught.value)
