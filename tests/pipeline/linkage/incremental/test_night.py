"""Tests that a night on a snapshot gives the rows of a full linkage, or decides that it needs one."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.place_numbers import write_all_place_numbers
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES, scan_live_atoms
from catalog_store.tables.files import count_rows, list_parts, read_table, write_table
from pipeline.linkage import edge_evidence, mapped_atoms, staged_records, stages, typo_edges
from pipeline.linkage.id_registry import collect_registry
from pipeline.linkage.incremental import atom_changes, night
from pipeline.linkage.incremental.night import BASE_TABLES, read_night
from pipeline.paths import BuildPaths
from tests.pipeline.linkage.worlds import write_manifest

if TYPE_CHECKING:
    from pathlib import Path

RECORDS, RELEASES, RARE = 160, 12, 16
ARTISTS = ("Abba", "The Abba", "Cher", "Abba & Cher", "Abba feat. Cher", "Cher x Dido", "Dido", "Didoo", "Various Artists", "Ella Vos")
TITLES = ("Take On Me", "Take on Mee", "Another Day", "Another Day in Paradise", "Fever", "Never", "Part II", "Part III", "Halo")
VERSIONS = (None, None, None, "Live", "Radio Edit", "Dido Remix", "Remix")
DURATIONS = (None, 200_000, 201_500, 204_000, 207_000, 211_000, 216_000, 240_000)
MIXED = ("{artist} - {title}", "{title} {artist} $ 1.29", "03. {title}", "{title} 3:24")
"""Titles that hold more than the title; some of their records credit nobody."""
CODES = tuple(f"GBABC20{number:05d}" for number in range(25))
LINKING = "catalog_b"
NUMBERED = CATALOG_PLATFORMS[::2]
"""Platforms whose staging has numbers beside its tables."""
REMIX = "GBABC2000099"
VERSIONS_UNDER_A_CODE = (
    ("streamsvc_a", "song", None, "GBABC2000098", 200_000),
    ("streamsvc_a", "remix", "Imanbek Remix", REMIX, 312_000),
    ("streamsvc_c", "other remix", "Imanbek Remix", REMIX, 312_600),
    ("streamsvc_b", "bare", None, REMIX, 311_800),
    ("streamsvc_a", "take", "Acoustic", "GBABC2000097", 150_000),
    ("streamsvc_b", "other_take", "Acoustic", "GBABC2000096", 150_500),
)
"""platform, external_id, version, code, duration_ms of records that never change: the last one left out the version of its code."""
DECISIONS = """
- {sense}: [streamsvc_a:r0, streamsvc_b:r1]
  why: two takes
  by: someone
  on: 2026-03-01
- must_link: [streamsvc_a:r6, catalog_b:r11]
  why: the store mistyped it
  by: someone
  on: 2026-03-01
- cannot_link: [streamsvc_a:take, streamsvc_b:other_take]
  why: two sessions
  by: someone
  on: 2026-03-01
"""


def _number_title(shown: str) -> int:
    return next(number for number, title in enumerate(TITLES) if title in shown) // 2


class Days:
    """A world with few names, codes and lengths, so that every change touches unchanged records."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.names = {f"id{number}": str(self.rng.choice(ARTISTS)) for number in range(len(ARTISTS))}
        self.rows = {f"r{number}": self._row(number) for number in range(RECORDS)}
        self.places = {name: self._place() for name in self.rows}
        releases = [(platform, f"rel{number}") for platform in CATALOG_PLATFORMS for number in range(RELEASES)]
        self.codes = {release: f"0{4000000000000 + number % 5}" for number, release in enumerate(releases)}
        self.withdrawn: set[tuple[str, str]] = set()
        self.unlisted: set[str] = set()
        self.listed = np.random.default_rng(seed)
        self.aliases = {f"rare{number}": self._owner() for number in range(RARE)}

    def _any(self, values: tuple[object, ...]) -> object:
        return values[int(self.rng.integers(len(values)))]

    def _row(self, number: int) -> dict[str, object]:
        artist, has_id = str(self._any(ARTISTS)), self.rng.random() < 0.6
        artist_id = f"id{ARTISTS.index(artist)}"
        if self.rng.random() < 0.2:  # a name that one or two records credit: without them joined names lose it as a known part
            artist_id = f"rare{int(self.rng.integers(RARE))}"
            artist = artist_id if has_id else f"{artist_id} & Cher"
        credited = {"artist_id": artist_id if has_id else None, "name": artist, "role": "primary"}
        shown = self.rng.random() < 0.2
        title = str(self._any(TITLES))
        is_mixed = self.rng.random() < 0.15
        shows_nobody = is_mixed and self.rng.random() < 0.6
        guest = {"artist_id": f"id{int(self.rng.integers(len(ARTISTS)))}", "name": str(self._any(ARTISTS)), "role": "featured"}
        return {
            "platform": CATALOG_PLATFORMS[number % 6],
            "external_id": f"r{number}",
            "link_id": f"r{number}",
            "title": str(self._any(MIXED)).format(artist=artist, title=title) if is_mixed else title,
            "version": self._any(VERSIONS),
            "artists": [] if shown or shows_nobody else [guest, credited] if self.rng.random() < 0.2 else [credited],
            "artist_credit": artist if shown and not shows_nobody else None,
            "isrcs": [] if self.rng.random() < 0.5 else [self._any(CODES)],
            "duration_ms": self._any(DURATIONS),
            "release_id": f"rel{int(self.rng.integers(RELEASES))}",
            "is_video": False,
            "traits": [],
        }

    def _list_versions(self, platform: str) -> list[dict[str, object]]:
        credited = {"artist_id": None, "name": "Saint Jhn", "role": "primary"}
        return [
            {
                "platform": there,
                "external_id": name,
                "link_id": name,
                "title": "Roses",
                "version": version,
                "artists": [credited],
                "artist_credit": None,
            }
            | {"isrcs": [code], "duration_ms": duration_ms, "release_id": None, "is_video": False, "traits": []}
            for there, name, version, code, duration_ms in VERSIONS_UNDER_A_CODE
            if there == platform
        ]

    def _place(self) -> str:
        return f"rel{int(self.rng.integers(RELEASES))}"

    def pass_by(self) -> None:
        """Change the world: records change, leave and return; an artist is renamed; releases get other barcodes and positions."""
        for name in list(self.rows):
            if self.rng.random() < 0.05:
                number = int(name[1:])
                self.rows[name] = self._row(number)
            elif self.rng.random() < 0.03:
                del self.rows[name]
        back = int(self.rng.integers(RECORDS))
        self.rows.setdefault(f"r{back}", self._row(back))
        self.names[f"id{int(self.rng.integers(len(ARTISTS)))}"] = str(self._any(ARTISTS))
        # An artist whom records credit leaves the platforms' own lists, or returns to them.
        self.unlisted ^= {f"id{int(self.rng.integers(len(ARTISTS)))}"}
        self.aliases[f"rare{int(self.listed.integers(RARE))}"] = self._owner()
        self.places[str(self._any(tuple(self.places)))] = self._place()
        # Another barcode on the same tracks; a release that vanishes with its tracks, or returns; others of its barcode stay as they are.
        self.codes[self._release()] = f"0{4000000000000 + int(self.rng.integers(5))}"
        self.withdrawn ^= {self._release()}

    def _release(self) -> tuple[str, str]:
        return tuple(self.codes)[int(self.rng.integers(len(self.codes)))]

    def stage(self, paths: BuildPaths) -> None:
        shutil.rmtree(paths.root / "work" / "staging", ignore_errors=True)
        for platform in CATALOG_PLATFORMS:
            rows = [row for row in self.rows.values() if row["platform"] == platform]
            self._write(paths, platform, "source_recording", [*rows, *self._list_versions(platform)])
            self._write(
                paths,
                platform,
                "source_artist",
                [self._artist(platform, *item) for item in self.names.items() if item[0] not in self.unlisted],
            )
            releases = [
                {"release_id": release, "title": release, "artists": [], "gtin": gtin, "is_compilation": False, "is_official": True}
                for (there, release), gtin in self.codes.items()
                if there == platform and (platform, release) not in self.withdrawn
            ]
            self._write(paths, platform, "source_release", [{"platform": platform, **release} for release in releases])
            placed = [(row["external_id"], self.places[str(row["external_id"])], _number_title(str(row["title"]))) for row in rows]
            tracks = [
                {"platform": platform, "release_id": release, "external_id": record, "disc_number": 1, "track_number": track}
                for record, release, track in placed
                if (platform, release) not in self.withdrawn
            ]
            self._write(paths, platform, "source_release_track", tracks)
            self._write(paths, platform, "source_link", [self._link(row) for row in rows if platform == LINKING])
            if platform in NUMBERED:
                write_all_place_numbers(paths.staging(platform))

    def _link(self, row: dict[str, object]) -> dict[str, object]:
        """Link to a record of the previous platform, under the same title if there is one."""
        others = [other for other in self.rows.values() if other["platform"] == CATALOG_PLATFORMS[CATALOG_PLATFORMS.index(LINKING) - 1]]
        target = min(others, key=lambda other: (other["title"] != row["title"], other["artists"] != row["artists"]))
        ends = {"entity_id": row["external_id"], "target_platform": target["platform"], "target_id": target["external_id"]}
        return {"platform": LINKING, "entity_kind": "recording", **ends, "target_kind": "recording", "url": "https://example.org"}

    def _artist(self, platform: str, artist_id: str, name: str) -> dict[str, object]:
        aliases = [other for other, owner in self.aliases.items() if owner == (platform, artist_id)]
        return {"platform": platform, "artist_id": artist_id, "name": name, "aliases": aliases, "is_placeholder": False}

    def _owner(self) -> tuple[str, str]:
        """Draw the artist for whom a platform lists a name, by separate draws, so that the records stay as they are."""
        return LINKING, f"id{int(self.listed.integers(len(ARTISTS)))}"

    def _write(self, paths: BuildPaths, platform: str, table: str, rows: list[dict[str, object]]) -> None:
        frame = pl.DataFrame(rows, schema=TABLES[table].polars_schema, orient="row")
        write_table(TABLES[table], paths.staging(platform) / table, [frame])


def link_in_stages(paths: BuildPaths) -> dict[str, int]:
    facts = stages.write_atoms(paths, buckets=2)
    stages.write_edges(paths, buckets=3)
    stages.write_clusters(paths)
    stages.write_recording_ids(paths)
    collect_registry(paths)
    return facts


def publish(paths: BuildPaths, name: str) -> None:
    """Publish the tables that linkage reads."""
    next_ids, tables = collect_registry(paths), paths.snapshots / name / "tables"
    for table in BASE_TABLES:
        shutil.copytree(paths.table(table), tables / table)
    shutil.copytree(paths.table("redirect"), tables / "redirect")
    write_manifest(tables.parent, next_ids)
    paths.current.unlink(missing_ok=True)
    paths.current.symlink_to(tables.parent)


def link_in_full(paths: BuildPaths, root: Path) -> BuildPaths:
    """Return another catalog with the same staging and snapshots, linked in full."""
    shutil.copytree(paths.root, root, symlinks=True)
    other = BuildPaths(root)
    other.relink.touch()
    assert link_in_stages(other)["is_in_full"]
    return other


def content(paths: BuildPaths) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of all tables in their order; of atoms the live ones."""
    return {name: rows_of(name, paths).rows() for name in (*BASE_TABLES, "redirect") if name != "atom_gone"}


def rows_of(name: str, paths: BuildPaths) -> pl.DataFrame:
    if name in ATOM_TABLES:
        return scan_live_atoms(name, paths.table).collect().sort(TABLES[name].primary_key)
    return read_table(TABLES[name], paths.table(name))


@pytest.mark.parametrize(
    "seed",
    [*(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 3)), *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))],
)
def test_night_on_a_snapshot_equals_full_linkage(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atom_changes, "MOST_CHANGED", 1.0)
    monkeypatch.setattr(atom_changes, "MOST_GONE", (100.0, 0.0)[seed % 2])
    monkeypatch.setattr(edge_evidence, "PAIRS_AT_A_TIME", 7)
    monkeypatch.setattr(typo_edges, "LARGEST_BLOCK", (400, 3)[seed // 2])
    # A night of several pieces and buckets: some buckets lose all their records, and decisions reach from one to another.
    monkeypatch.setattr(atom_changes, "ATOMS_PER_PIECE", 5)
    monkeypatch.setattr(atom_changes, "count_buckets", lambda rows: 1 + rows // 9)
    monkeypatch.setattr(staged_records, "ARTISTS_PER_PIECE", 4)
    days, paths = Days(seed), BuildPaths(tmp_path / "catalog")
    days.stage(paths)
    paths.overrides.write_text(DECISIONS.format(sense="cannot_link"))
    link_in_stages(paths)
    publish(paths, "night-0")
    retired, kinds, owned = 0, set[str](), False
    for number in range(1, 4):
        days.pass_by()
        days.stage(paths)
        facts = link_in_stages(paths)
        assert not facts["is_in_full"]
        # The names and lengths of both would give one atom.
        takes = rows_of("atom_member", paths).filter(pl.col("external_id").is_in(["take", "other_take"]))
        assert takes["atom_id"].n_unique() == takes.height > 1
        assert 0 < facts["changed_records"] < facts["records"]
        other = link_in_full(paths, tmp_path / f"full-{number}")
        assert content(paths) == content(other)
        kinds |= set(read_table(TABLES["edge"], paths.table("edge"))["kind"])
        assert bool(count_rows(paths.table("atom_gone"))) == (seed % 2 == 0)
        added = len(list_parts(paths.table("atom"))) - len(list_parts(paths.current / "tables" / "atom"))
        assert added > 1 or seed % 2, "the new atoms are not cut into buckets"
        owned |= bool(read_table(TABLES["credit_name"], paths.table("credit_name"))["owner_keys"].drop_nulls().len())
        retired += read_table(TABLES["redirect"], paths.table("redirect")).height
        publish(paths, f"night-{number}")
    assert retired > 0
    assert owned
    assert kinds >= {"override", "link", "typo", "version"}
    assert kinds & {"isrc", "position"}


@pytest.fixture
def linked(tmp_path: Path, request: pytest.FixtureRequest) -> BuildPaths:
    """Return the published first night of a world; a test may name the world's seed."""
    days, paths = Days(getattr(request, "param", 11)), BuildPaths(tmp_path / "catalog")
    days.stage(paths)
    link_in_stages(paths)
    publish(paths, "base")
    return paths


def test_night_without_changes_makes_no_atom_and_changes_no_row(linked: BuildPaths) -> None:
    before = content(linked)
    facts = link_in_stages(linked)
    assert (facts["is_in_full"], facts["changed_records"], facts["changed_atoms"]) == (0, 0, 0)
    assert content(linked) == before


@pytest.mark.slow
@pytest.mark.parametrize("linked", [11, 13, *(pytest.param(seed, marks=pytest.mark.long) for seed in (5, 9, 10, 15))], indirect=True)
def test_platform_that_leaves_and_returns_finds_its_ids(linked: BuildPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atom_changes, "MOST_CHANGED", 1.0)
    before = read_table(TABLES["recording_member"], linked.table("recording_member"))
    shutil.move(linked.staging("streamsvc_a"), tmp_path / "away")
    link_in_stages(linked)
    assert content(linked) == content(link_in_full(linked, tmp_path / "full"))
    publish(linked, "without")
    shutil.move(tmp_path / "away", linked.staging("streamsvc_a"))
    assert not link_in_stages(linked)["is_in_full"]
    assert read_table(TABLES["recording_member"], linked.table("recording_member")).equals(before)
    assert content(linked) == content(link_in_full(linked, tmp_path / "full again"))


def test_changed_popularity_changes_no_record(linked: BuildPaths) -> None:
    folder = linked.staging("streamsvc_b") / "source_recording"
    rows = read_table(TABLES["source_recording"], folder)
    write_table(TABLES["source_recording"], folder, [rows.with_columns(popularity=pl.lit(0.5))])
    assert link_in_stages(linked)["changed_records"] == 0


def reason_of(paths: BuildPaths) -> str:
    facts = link_in_stages(paths)
    assert facts["is_in_full"]
    return read_night(paths).reason


@pytest.mark.slow
def test_changed_overrides_cause_a_full_linkage(linked: BuildPaths) -> None:
    linked.overrides.write_text(DECISIONS.format(sense="must_link"))
    assert "overrides differ from those" in reason_of(linked)


@pytest.mark.slow
def test_changed_code_causes_a_full_linkage(linked: BuildPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night, "_LIBRARIES", ("polars",))
    assert "differ from those of the live snapshot" in reason_of(linked)


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["gone", "empty"])
def test_snapshot_without_a_table_causes_a_full_linkage(harm: str, linked: BuildPaths) -> None:
    table = linked.current / "tables" / "atom_isrc"
    shutil.rmtree(table)
    if harm == "empty":
        table.mkdir()
    assert "lacks atom_isrc" in reason_of(linked)


@pytest.mark.slow
def test_torn_table_of_the_snapshot_causes_a_full_linkage(linked: BuildPaths) -> None:
    part = next((linked.current / "tables" / "atom").glob("part-*.parquet"))
    part.write_bytes(part.read_bytes()[:-10])
    assert f"{part.name} of the live snapshot is torn: run `verify`" in reason_of(linked)


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["torn", "gone"])
def test_unusable_mapped_file_causes_a_full_linkage(harm: str, linked: BuildPaths) -> None:
    before = content(linked)
    file = min(mapped_atoms.get_mapped_folder(linked).glob("atom_member-*"))
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:1000])
    reason = reason_of(linked)
    # Files are named by their content, so the first may belong to either part.
    assert re.search(r"atom_member/part-0000[01]\.parquet has no usable copy", reason)
    assert content(linked) == before
    assert not link_in_stages(linked)["is_in_full"]


def test_many_changed_records_cause_a_full_linkage(linked: BuildPaths) -> None:
    folder = linked.staging("streamsvc_c") / "source_recording"
    rows = read_table(TABLES["source_recording"], folder)
    write_table(TABLES["source_recording"], folder, [rows.with_columns(title=pl.col("title") + " again", content_hash=None)])
    assert "of the records have changed" in reason_of(linked)


@pytest.mark.slow
def test_many_renamed_artists_cause_a_full_linkage(linked: BuildPaths) -> None:
    for platform in CATALOG_PLATFORMS:
        folder = linked.staging(platform) / "source_artist"
        rows = read_table(TABLES["source_artist"], folder)
        write_table(TABLES["source_artist"], folder, [rows.with_columns(name=pl.col("name") + " again")])
    assert "names with another meaning" in reason_of(linked)


@pytest.mark.slow
def test_operator_can_request_a_full_linkage(linked: BuildPaths) -> None:
    linked.relink.touch()
    assert "requests full linkage" in reason_of(linked)


def test_later_stages_do_not_build_on_a_pruned_snapshot(linked: BuildPaths) -> None:
    link_in_stages(linked)
    note = linked.root / "work" / "linkage" / "night.json"
    assert json.loads(note.read_text())["base"] == "base"
    (linked.snapshots / "base").rename(linked.snapshots / "pruned")
    assert read_night(linked).base is None


@pytest.mark.slow
def test_night_after_a_dead_one_equals_full_linkage(linked: BuildPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atom_changes, "MOST_CHANGED", 1.0)
    days = Days(9)
    days.pass_by()
    days.stage(linked)
    stages.write_atoms(linked)
    stages.write_edges(linked)
    days.pass_by()
    days.stage(linked)
    link_in_stages(linked)
    assert content(linked) == content(link_in_full(linked, tmp_path / "full"))
