from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.snapshot import read_manifest
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table
from pipeline.build.workbench import open_workbench
from pipeline.linkage.golden_pairs import GoldenResult, load_golden_pairs
from pipeline.paths import BuildPaths
from pipeline.quality import build_figures
from pipeline.quality.build_figures import _QUERIES, find_golden_figures, keep_listed_twice, read_published_figures

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.linkage.golden_pairs import GoldenPair
    from tests.conftest import BuiltWorld


def atoms(*rows: tuple[int, int | None]) -> pl.DataFrame:
    """Return the columns atom_id and duration in seconds."""
    known = {"artist_key": "a", "title_key": "t", "stem_key": "t", "number_key": "", "variant": "", "record_count": 1, "platform_count": 1}
    made = [{**known, "atom_id": number, "names": ["a"], "duration_ms": None if s is None else s * 1000} for number, s in rows]
    return pl.DataFrame(made, schema=TABLES["atom"].polars_schema)


def members(*rows: tuple[str, int, str | None]) -> pl.DataFrame:
    """Return the columns external id, atom_id and release."""
    made = [{"platform": "store_a", "external_id": number, "atom_id": atom, "release_id": release} for number, atom, release in rows]
    return pl.DataFrame(made, schema=TABLES["atom_member"].polars_schema)


def signs(
    root: Path,
    atom: pl.DataFrame,
    member: pl.DataFrame,
    cluster: dict[int, int],
    *,
    staged: pl.DataFrame | None = None,
    edges: pl.DataFrame | None = None,
) -> dict[str, int]:
    paths = BuildPaths(root)
    clusters = pl.DataFrame(list(cluster.items()), schema=TABLES["cluster"].polars_schema, orient="row")
    edges = TABLES["edge"].build_empty() if edges is None else edges
    for name, frame in (("atom", atom), ("atom_member", member), ("cluster", clusters), ("edge", edges)):
        write_table(TABLES[name], paths.table(name), [frame])
    if staged is not None:
        write_table(TABLES["source_recording"], paths.staging("store_a") / "source_recording", [staged])
    with open_workbench(paths, "test") as bench:
        keep_listed_twice(bench)
        return dict(bench.execute(_QUERIES["mixed"]).fetchall())


def test_recordings_whose_durations_are_far_apart_are_counted_once(tmp_path: Path) -> None:
    near, far, long = {1: 1, 2: 1}, {3: 3, 4: 3, 5: 3}, {6: 6, 7: 6}
    atom = atoms((1, 200), (2, 215), (3, 200), (4, 240), (5, None), (6, 3600), (7, 3300))
    found = signs(tmp_path, atom, members(*((str(n), n, None) for n in range(1, 8))), near | far | long)
    assert found == {"wide_durations": 1, "twice_on_a_release": 0}


def test_recording_that_is_twice_on_one_release_is_counted_once(tmp_path: Path) -> None:
    member = members(("a", 1, "r"), ("b", 2, "r"), ("c", 2, "s"), ("d", 2, "s"), ("e", 3, "r"), ("f", 3, None), ("g", 3, None))
    found = signs(tmp_path, atoms((1, 200), (2, 200), (3, 200)), member, {1: 1, 2: 1, 3: 3})
    assert found == {"wide_durations": 0, "twice_on_a_release": 1}


def test_tracks_of_a_release_with_a_reason_to_be_one_recording_are_not_counted(tmp_path: Path) -> None:
    coded, printed_again = (
        [("a", "r", ["USAAA2000001"], None), ("b", "r", ["USAAA2000001"], None)],
        [("c", "s", [], None), ("d", "s", [], "c")],
    )
    decided, without_reason = [("e", "t", [], None), ("f", "t", [], None)], [("g", "u", [], None), ("h", "u", ["USAAA2000001"], None)]
    rows = [(row, atom) for atom, pair in enumerate((coded, printed_again, decided, without_reason), 1) for row in pair]
    staged = pl.DataFrame(
        [
            {"platform": "store_a", "external_id": name, "link_id": name, "title": "Song", "release_id": release, "isrcs": isrcs,
             "repeats": repeats, "is_video": False, "artists": [], "traits": []}
            for (name, release, isrcs, repeats), _ in rows
        ],
        schema=TABLES["source_recording"].polars_schema,
    )  # fmt: skip
    member = members(*((name, atom, release) for (name, release, _, _), atom in rows))
    edge = {"atom_id_a": 3, "atom_id_b": 5, "kind": "override", "score": 1.0, "evidence": "a decision"}
    edges = pl.DataFrame([edge], schema=TABLES["edge"].polars_schema)
    atom = atoms(*((number, 200) for number in range(1, 6)))
    found = signs(tmp_path, atom, member, {1: 1, 2: 2, 3: 3, 4: 4, 5: 3}, staged=staged, edges=edges)
    assert found["twice_on_a_release"] == 1


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the sizes of the sets of golden pairs that are judged; each has one pair, which is right."""
    sizes: list[int] = []

    def judge(pairs: tuple[GoldenPair, ...]) -> GoldenResult:
        sizes.append(len(pairs))
        return GoldenResult(len(pairs), 1.0, 0.5, {})

    monkeypatch.setattr(build_figures, "load_golden_pairs", lambda: load_golden_pairs()[:1])
    monkeypatch.setattr(build_figures, "judge", judge)
    return sizes


def test_golden_pairs_are_judged_once_for_a_program(judged: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = BuildPaths(tmp_path)
    first = find_golden_figures(paths)
    assert first["golden", "recall"] == 0.5
    assert find_golden_figures(paths) == first
    assert judged == [1]
    monkeypatch.setattr(build_figures, "hash_program", lambda: "another program")
    assert find_golden_figures(paths) == first
    assert judged == [1, 1]


def test_golden_pairs_are_judged_again_when_everything_is_rebuilt(judged: list[int], tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    find_golden_figures(paths)
    paths.ask_for_relink()
    find_golden_figures(paths)
    assert judged == [1, 1]


def test_damaged_figures_of_golden_pairs_are_found_again(judged: list[int], tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    first = find_golden_figures(paths)
    (tmp_path / "work" / "carried" / "golden_pairs.json").write_bytes(b'{"program"')
    assert find_golden_figures(paths) == first
    assert judged == [1, 1]


def test_nothing_is_published_yet(tmp_path: Path) -> None:
    assert read_published_figures(BuildPaths(tmp_path)) == {}


def test_the_figures_of_a_build_are_published_with_it(built_world: BuiltWorld) -> None:
    figures = read_published_figures(BuildPaths(built_world.catalog))
    current = built_world.catalog / "current"
    rows = {name: table.rows for name, table in read_manifest(current).tables.items()}
    assert {name: value for (topic, name), value in figures.items() if topic == "rows"} == {
        n: r for n, r in rows.items() if n != "build_figure"
    }
    recording = read_table(TABLES["recording"], current / "tables" / "recording")
    assert figures["nulls", "recording.isrc"] == recording["isrc"].null_count() / recording.height
    assert sum(value for (topic, _), value in figures.items() if topic == "cluster_records") == recording.height
    assert {name for topic, name in figures if topic == "golden_pair"} == {pair.name for pair in load_golden_pairs()}
    assert figures["truth", "precision"] > 0.99
    assert figures["intake", "store_a.source_recording.read"] >= figures["intake", "store_a.source_recording.staged"] > 0


def test_snapshot_published_without_figures_gives_its_size(built_world: BuiltWorld, tmp_path: Path) -> None:
    (tmp_path / "current" / "tables").mkdir(parents=True)
    (tmp_path / "current" / "tables" / "recording").symlink_to(built_world.catalog / "current" / "tables" / "recording")
    assert set(read_published_figures(BuildPaths(tmp_path))) == {("rows", "recording")}
