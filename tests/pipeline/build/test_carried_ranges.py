from __future__ import annotations

import errno
import os
import shutil
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from catalog_store.sealed_frames import write_sealed
from catalog_store.snapshot import hash_file
from catalog_store.tables import TABLES as SPECS
from catalog_store.tables.files import list_parts, write_table
from pipeline.build import carried_ranges, recording_ranges
from pipeline.build.artists import build_artists
from pipeline.build.carried_ranges import RangeCarrier
from pipeline.build.genre_strings import number_strings
from pipeline.build.genres import build_genres
from pipeline.build.labels import build_labels
from pipeline.build.recording_ranges import write_range
from pipeline.build.recordings import build_recordings
from pipeline.build.releases import build_releases

from .conftest import World, credit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLATFORMS = ("catalog_a", "catalog_b", "store_a", "streamsvc_a")
TABLES = ("recording_artist", "recording", "recording_provenance", "recording_isrc")
GENRE_TABLES = ("recording_genre", "genre_coverage", "unclassified_genre_string")
GENRES = (None, "House", "Deep House", "Techno", "Rock", "Electronic", "Wobbly Something", "Unheard-of")
"""Strings of platforms; no rule knows the last two."""
IDS = 40
"""Recordings of a world; ranges hold 7."""


@dataclass
class Record:
    """A source record, the recording that linkage gives it, and the day of its release."""

    recording: int
    title: str
    values: dict[str, Any]
    artist: int
    release_day: str | None
    genre: str | None


@dataclass
class Nights:
    """A world that changes in every way that reaches a recording, night by night."""

    random: Random
    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=lambda: {number: f"Artist {number}" for number in range(6)})
    genres: dict[int, str] = field(default_factory=lambda: {0: "Jazz", 1: "House"})
    """Genres of artists."""
    absent: set[str] = field(default_factory=set)
    """Platforms that deliver nothing tonight."""

    def add_record(self) -> None:
        platform, number = self.random.choice(PLATFORMS), self.random.randrange(1, IDS)
        values = {"duration_ms": self.random.choice((None, 180_000 + number)), "popularity": 0.5}
        day = self.random.choice((None, "2001-02-03", "2010-05-06", "2099-01-01"))
        record = Record(
            number, f"Song {number}", values | {"isrcs": self.draw_codes(number)}, self.random.randrange(6), day, self.random.choice(GENRES)
        )
        self.records[platform, f"x{self.random.randrange(10_000):04d}"] = record

    def draw_codes(self, number: int) -> list[str]:
        return [f"US{letters}{year:02d}{number:05d}" for letters in ("AAA", "BBB") for year in (5, 99) if self.random.random() < 0.3]

    def change(self) -> None:
        """Change a few records in one way each."""
        for key in self.random.sample(sorted(self.records), k=4):
            self.change_record(key, self.records[key], self.random)

    def change_record(self, key: tuple[str, str], record: Record, draw: Random) -> None:
        changes: dict[str, Callable[[], object]] = {
            "retitled": lambda: setattr(record, "title", f"{record.title} {draw.choice(('Live', '(Remix)', 'again'))}"),
            "featured": lambda: self.feature(record, draw),
            "recoded": lambda: record.values.update(isrcs=self.draw_codes(record.recording)),
            "retimed": lambda: record.values.update(duration_ms=200_000 + draw.randrange(9_000)),
            "ranked": lambda: record.values.update(popularity=draw.random()),
            "credited": lambda: setattr(record, "artist", draw.randrange(6)),
            # Recordings merge, vanish, come back and split.
            "moved": lambda: setattr(record, "recording", draw.randrange(1, IDS)),
            "split": lambda: setattr(record, "recording", IDS + draw.randrange(10)),
            "released": lambda: setattr(record, "release_day", draw.choice((None, "1999-09-09", "2020-01-01"))),
            "tagged": lambda: setattr(record, "genre", draw.choice(GENRES)),
            "artist tagged": lambda: self.genres.update({record.artist: str(draw.choice(GENRES))}),
            "removed": lambda: self.records.pop(key),
            "renamed": lambda: self.names.update({record.artist: f"{self.names[record.artist]} Jr"}),
            # A platform leaves or returns.
            "away": lambda: self.absent.symmetric_difference_update({key[0]}),
            "added": self.add_record,
        }
        changes[draw.choice(sorted(changes))]()

    def feature(self, record: Record, draw: Random) -> None:
        """Let the title name an artist, who may be renamed, come and go."""
        record.title = f"{record.title} (feat. {self.names[draw.randrange(6)]})"

    def write(self, root: Path) -> World:
        """Lay the world of tonight down in a catalog, and build what recordings are made from."""
        world = World(root)
        for (platform, name), record in sorted(self.records.items()):
            if platform in self.absent:
                continue
            artist = credit(self.names[record.artist], f"a{record.artist}")
            world.recording(record.recording, platform, name, record.title, artist, **record.values)
            if record.genre:
                world.add("source_genre", platform, entity_kind="recording", entity_id=name, genre=record.genre)
            if record.release_day:
                world.release(platform, f"r{name}", "Album", artist, tracks=(name,), release_date=record.release_day)
        for platform in {*PLATFORMS} - self.absent:
            for artist, genre in self.genres.items():
                world.add("source_genre", platform, entity_kind="artist", entity_id=f"a{artist}", genre=genre)
        if not any(table == "source_release" for _, table in world.rows):
            world.release("store_a", "none", "Nothing")
        # The snapshots of this world have no registry of ids, so identity must not see them.
        current = root / "current"
        live = current.readlink() if current.is_symlink() else None
        current.unlink(missing_ok=True)
        for step in (build_artists, build_labels, build_releases):
            step(world.write())
        if live:
            current.symlink_to(live)
        return world


IDENTITY_TABLES = ("source_credit", "artist_source", "artist", "artist_alias", "label", "release_source", "release", "recording_release")


@pytest.mark.parametrize(("seed", "count"), [(4, 3), pytest.param(5, 8, marks=pytest.mark.slow)])
def test_artists_and_releases_of_nights_that_remember_texts_are_those_of_full_builds(tmp_path: Path, seed: int, count: int) -> None:
    nights = Nights(Random(seed))  # noqa: S311 - a world is no secret
    for _ in range(60):
        nights.add_record()
    for record in [*nights.records.values()][:12]:
        nights.feature(record, nights.random)
    guests = 0
    for number in range(count):
        # No night is published: each remembers what a night before it read that failed.
        world = nights.write(tmp_path)
        tonight = {name: world.read(name) for name in IDENTITY_TABLES}
        world.paths.ask_for_relink()
        for step in (build_artists, build_labels, build_releases):
            step(world.paths)
        world.paths.relink.unlink()
        for name in IDENTITY_TABLES:
            assert tonight[name].equals(world.read(name)), f"night {number}: {name}"
        guests += tonight["source_credit"]["is_named_by_title"].sum()
        for _ in range(3):
            nights.change()
    assert guests > 0


def publish(root: Path, name: str) -> None:
    """Make the tables of the work folder the live snapshot."""
    tables = root / "published" / name / "tables"
    for table in (*TABLES, *GENRE_TABLES):
        (tables / table).mkdir(parents=True)
        for part in list_parts(root / "work" / "catalog" / table):
            shutil.copyfile(part, tables / table / f"{part.stem}-{hash_file(part)[:16]}.parquet")
    (root / "current").unlink(missing_ok=True)
    (root / "current").symlink_to(tables.parent)


def hash_tables(world: World) -> dict[str, list[str]]:
    return {name: [hash_file(part) for part in list_parts(world.paths.table(name))] for name in (*TABLES, *GENRE_TABLES)}


def build_tables(world: World) -> tuple[int, int]:
    """Build recordings and genres, and return how many recordings each of the two stages took over."""
    facts = build_recordings(world.paths), build_genres(world.paths)
    return facts[0]["carried_recordings"], facts[1]["carried_recordings"]


def build_anew(world: World) -> dict[str, list[str]]:
    """Build the tables of a world without the live snapshot's rows, and return the checksums of all parts."""
    world.paths.ask_for_relink()
    assert build_tables(world) == (0, 0)
    world.paths.relink.unlink()
    return hash_tables(world)


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", 7)


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 3), pytest.param(2, 6, marks=pytest.mark.slow), pytest.param(3, 6, marks=pytest.mark.slow)]
)
def test_nights_that_carry_recordings_over_end_byte_equal_to_full_builds(tmp_path: Path, seed: int, count: int) -> None:
    nights = Nights(Random(seed))  # noqa: S311 - a world is no secret
    for _ in range(80):
        nights.add_record()
    carried = []
    for number in range(count):
        world = nights.write(tmp_path)
        carried.append(build_tables(world))
        tonight = hash_tables(world)
        assert tonight == build_anew(world), f"night {number}"
        publish(tmp_path, f"night-{number}")
        nights.change()
    assert carried[0] == (0, 0)
    recordings, genres = (sum(stage) for stage in zip(*carried, strict=True))
    assert recordings > 0
    assert genres > 0


def build_twice(root: Path) -> World:
    """Build and publish a small world, so that the next night can carry all of it over."""
    world = World(root)
    for number in range(1, 11):
        world.recording(number, "store_a", f"x{number}", f"Song {number}", credit("Nova", "n"))
        world.release("store_a", f"r{number}", "Album", credit("Nova", "n"), tracks=(f"x{number}",))
    for step in (build_artists, build_labels, build_releases, build_recordings, build_genres):
        step(world.write())
    publish(root, "first")
    assert build_recordings(world.paths)["carried_recordings"] == 10
    return world


def write_ten(root: Path, *, is_changed: bool) -> World:
    """Lay down ten recordings; in the changed world each of the first nine differs in another input."""
    world = World(root)
    for number in range(1, 11):
        name, here = f"x{number}", number if is_changed else 0
        artist = credit("Zed", "z") if here == 1 else credit("Nova", "n")
        codes = [f"USAAA0500{number:03d}", *([f"USBBB9900{number:03d}"] if here == 2 else [])]
        values = {"isrcs": codes, "duration_ms": 210_000 if here == 3 else 200_000, "popularity": 0.9 if here == 4 else 0.5}
        world.recording(number, "store_a", name, "Other" if here == 5 else f"Song {number}", artist, **values)
        world.variants[number] = "live" if here == 6 else ""
        day = "1999-09-09" if here == 7 else "2001-02-03"
        world.release("store_a", f"r{number}", f"Album {number}", artist, tracks=(name,), release_date=day)
        if here == 8:
            world.recording(number, "streamsvc_a", name, f"Song {number}", artist)
    for step in (build_artists, build_labels, build_releases):
        step(world.write())
    if is_changed:  # linkage found that the ninth code belongs to nobody
        owners = world.read("isrc_owner").filter(pl.col("recording_id") != 9)
        write_table(SPECS["isrc_owner"], world.paths.table("isrc_owner"), owners)
    return world


def test_a_change_of_any_input_reaches_its_recording_and_no_other(tmp_path: Path) -> None:
    world = write_ten(tmp_path, is_changed=False)
    build_tables(world)
    before = world.read("recording_provenance").join(world.read("recording"), on="recording_id")
    # Identity is settled before there is a snapshot, which has no registry here.
    world = write_ten(tmp_path, is_changed=True)
    publish(tmp_path, "first")
    # The fourth has another popularity alone, which is brought up to date in the row that is carried over.
    assert build_recordings(world.paths)["carried_recordings"] == 2
    tonight = {name: hash_tables(world)[name] for name in TABLES}
    after = world.read("recording_provenance").join(world.read("recording"), on="recording_id")
    changed = [number for number in range(1, 11) if not before.filter(recording_id=number).equals(after.filter(recording_id=number))]
    world.paths.ask_for_relink()
    build_recordings(world.paths)
    assert tonight == {name: hash_tables(world)[name] for name in TABLES}
    assert {*range(2, 10)} <= {*changed} <= {*range(1, 10)}


def test_a_dump_of_the_next_day_rebuilds_only_recordings_with_a_date_that_it_makes_believable(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number in range(1, 11):
        world.recording(number, "store_a", f"x{number}", f"Song {number}", credit("Nova", "n"))
        day = "2027-01-02" if number == 3 else "2020-02-02"
        world.release("store_a", f"r{number}", "Album", credit("Nova", "n"), tracks=(f"x{number}",), release_date=day)
    for step in (build_artists, build_labels, build_releases):
        step(world.write())
    (tmp_path / "landing" / "store_a" / "2025-12-31").mkdir(parents=True)
    build_tables(world)
    assert world.read("recording")["release_date"].null_count() == 1
    publish(tmp_path, "first")
    (tmp_path / "landing" / "store_a" / "2026-01-01").mkdir()
    assert build_recordings(world.paths)["carried_recordings"] == 9
    assert world.read("recording")["release_date"].null_count() == 0


def test_a_night_that_ranks_every_record_anew_carries_all_recordings_over_with_their_new_popularity(tmp_path: Path) -> None:
    def write(popularity: Callable[[int], float | None]) -> World:
        world = World(tmp_path)
        for number in range(1, 11):
            for platform, rank in (("store_a", number), ("streamsvc_a", 11 - number)):
                values = {"popularity": popularity(rank), "isrcs": [f"USAAA0500{number:03d}"]}
                world.recording(number, platform, f"x{number}", f"Song {number}", credit("Nova", "n"), **values)
        world.release("store_a", "r1", "Album", credit("Nova", "n"), tracks=("x1",))
        for step in (build_artists, build_labels, build_releases):
            step(world.write())
        return world

    build_tables(write(lambda rank: rank / 20))
    # Identity is settled before there is a snapshot, which has no registry here.
    world = write(lambda rank: None if rank in (5, 6) else (11 - rank) / 11)
    publish(tmp_path, "first")
    assert build_recordings(world.paths)["carried_recordings"] == 10
    tonight = {name: hash_tables(world)[name] for name in TABLES}
    provenance = world.read("recording_provenance")
    world.paths.ask_for_relink()
    build_recordings(world.paths)
    assert tonight == {name: hash_tables(world)[name] for name in TABLES}
    assert provenance["popularity_reason"].value_counts().sort("count").rows() == [("breadth", 2), ("best_rank", 8)]


def test_another_program_carries_nothing_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = build_twice(tmp_path)
    monkeypatch.setattr(carried_ranges, "hash_program", lambda: "another program")
    assert build_recordings(world.paths)["carried_recordings"] == 0


def test_a_damaged_part_of_the_live_snapshot_is_not_carried_over(tmp_path: Path) -> None:
    world = build_twice(tmp_path)
    (part,) = (part for part in list_parts(tmp_path / "current" / "tables" / "recording") if "00000" in part.name)
    content = bytearray(part.read_bytes())
    content[8] ^= 1
    part.write_bytes(content)
    assert build_recordings(world.paths)["carried_recordings"] == 4


def test_torn_digests_are_ignored(tmp_path: Path) -> None:
    world = build_twice(tmp_path)
    for file in (tmp_path / "work" / "carried" / "recordings").rglob("*.arrow"):
        file.write_bytes(file.read_bytes()[:-100])
    assert build_recordings(world.paths)["carried_recordings"] == 0


def test_digests_of_replaced_snapshots_are_removed(tmp_path: Path) -> None:
    world = build_twice(tmp_path)
    folder = tmp_path / "work" / "carried" / "recordings"
    (folder / "0000-0000-0000").mkdir()
    (folder / "1111-1111-1111.arrow").write_bytes(b"of an earlier program")
    build_recordings(world.paths)
    assert len(list(folder.iterdir())) == 2


def test_what_the_rules_say_about_a_string_is_part_of_its_number() -> None:
    strings = pl.DataFrame({"string_id": [1], "platform": ["store_a"], "parent": [""], "genre": ["House"]})
    known = {"string_id": [1], "place": [0], "genre_id": [4], "main_id": [4], "rule_id": ["house"]}
    schema = {"string_id": pl.Int64, "place": pl.Int16, "genre_id": pl.Int32, "main_id": pl.Int32, "rule_id": pl.String}
    nobody, unknown = pl.DataFrame({"string_id": []}, schema={"string_id": pl.Int64}), strings.select("string_id")
    tags = [pl.DataFrame({**known, **change}, schema=schema) for change in ({}, {"genre_id": [5]}, {"rule_id": ["other"]}, {"place": [1]})]
    found = [number_strings(strings, rows, nobody) for rows in (*tags, tags[0].clear())] + [
        number_strings(strings, tags[0].clear(), unknown)
    ]
    assert len({rows["string_number"].item() for rows in found}) == 1
    assert len({rows["meaning"].item() for rows in found}) == len(found)
    moved = number_strings(strings.with_columns(string_id=pl.lit(9, pl.Int64)), tags[0].with_columns(string_id=pl.lit(9, pl.Int64)), nobody)
    assert moved.drop("string_id").equals(found[0].drop("string_id"))


def test_night_that_fails_between_two_files_of_a_range_leaves_nothing_to_carry_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_range(SPECS["recording_genre"], tmp_path / "recording_genre", SPECS["recording_genre"].build_empty())
    parts = list_parts(tmp_path / "recording_genre")
    carrier = RangeCarrier(tmp_path, {"recording_genre": {0: parts}}, seed=1)
    tonight, before = ({"said": pl.DataFrame({"recording_id": [7], "genre": [genre]})} for genre in ("House", "Techno"))
    voices = {name: pl.DataFrame({"recording_id": [7], "main_id": [number]}) for number, name in enumerate(("before", "tonight"))}
    nothing = {"voice": voices["before"].clear()}

    carrier.record(carrier.carry(0, before, nothing).digests, parts, {"voice": voices["before"]})
    assert carrier.carry(0, before, nothing).rows["voice"].equals(voices["before"])

    def write_until_full(file: Path, rows: pl.DataFrame) -> None:
        if file.name == "digests.arrow":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_sealed(file, rows)

    # Tonight's inputs give equal rows, so its files lie in the same folder.
    monkeypatch.setattr(carried_ranges, "write_sealed", write_until_full)
    with pytest.raises(OSError, match="No space left"):
        carrier.record(carrier.carry(0, tonight, nothing).digests, parts, {"voice": voices["tonight"]})
    assert carrier.carry(0, before, nothing).rows["voice"].is_empty()
