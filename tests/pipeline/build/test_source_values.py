from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from catalog_store.tables.files import list_parts
from pipeline.build import recording_ranges, source_values
from pipeline.build.artists import build_artists
from pipeline.build.labels import build_labels
from pipeline.build.recordings import build_recordings
from pipeline.build.releases import build_releases
from pipeline.build.source_values import build_source_values
from pipeline.linkage import staged_records

from .conftest import credit

if TYPE_CHECKING:
    import pytest

    from .conftest import World

NOVA = credit("Nova", "n")


def test_every_source_record_shows_its_own_values_and_those_of_its_release(world: World) -> None:
    world.recording(1, "streamsvc_a", "a", "Song", NOVA, duration_ms=200_000, isrcs=["GBAYE0000100"], release_id="r")
    world.recording(1, "catalog_b", "b", "Song!", NOVA, release_date="1999-01-01", release_date_precision="year")
    dated = {"release_date": "2001-03-07", "release_date_precision": "day"}
    world.release("streamsvc_a", "r", "Album", NOVA, tracks=("a",), label_name="Nova Records", **dated)
    world.release("catalog_b", "second", "Later", NOVA, tracks=("b",), **dated)
    world.release("catalog_b", "first", "Earlier", NOVA, tracks=("b",))
    shared = {"genre_id": None, "parent": None, "votes": None}
    for position, genre in enumerate(("Zouk", "Beat")):
        world.add("source_genre", "streamsvc_a", **shared, entity_kind="recording", entity_id="a", position=position, genre=genre)
    world.add("source_genre", "streamsvc_a", **shared, entity_kind="release", entity_id="r", position=0, genre="Pop")
    paths = world.write()
    for stage in (build_artists, build_labels, build_releases, build_recordings, build_source_values):
        stage(paths)

    own, named = sorted(world.read("recording_source").to_dicts(), key=lambda row: row["platform"])
    assert (named["title"], named["duration_ms"], named["isrcs"]) == ("Song", 200_000, ["GBAYE0000100"])
    assert (named["release_title"], named["label_name"]) == ("Album", "Nova Records")
    assert (named["genres"], named["release_genres"]) == (["Zouk", "Beat"], ["Pop"])
    assert (named["release_date"], named["release_date_entity"]) == (date(2001, 3, 7), "release")
    assert (own["title"], own["release_id"], own["genres"]) == ("Song!", "first", [])
    assert (own["release_date"], own["release_date_precision"], own["release_date_entity"]) == (date(1999, 1, 1), "year", "recording")
    assert own["recording_id"] == named["recording_id"]


def test_source_values_are_the_same_in_ranges_and_buckets_of_any_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for platform in ("streamsvc_a", "catalog_b"):
        for number in range(11):
            world.recording(20 - number, platform, f"{platform}-{number}", f"Song {number}", NOVA, isrcs=[f"GBAYE00001{number:02}"])
            world.add("source_genre", platform, **_genre("recording", f"{platform}-{number}", f"Genre {number}"))
        for album in range(4):
            tracks = tuple(f"{platform}-{number}" for number in range(11) if number % 4 == album)
            world.release(platform, f"album {album}", f"Album {album}", NOVA, tracks=tracks, label_name=f"Label {album}")
            world.add("source_genre", platform, **_genre("release", f"album {album}", f"Style {album}"))
    paths, found = world.write(), []
    for recordings, releases, rows in ((1_000, 1_000, 1_000), (3, 2, 4), (1, 1, 1)):
        monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", recordings)
        monkeypatch.setattr(source_values, "RELEASES_PER_BUCKET", releases)
        monkeypatch.setattr(staged_records, "ROWS_PER_SLICE", rows)
        assert build_source_values(paths)["source_values"] == 22
        found.append(world.read("recording_source"))
        assert len(list_parts(paths.table("recording_source"))) == len({number // recordings for number in range(10, 21)})
    whole, *others = found
    assert whole["release_title"].null_count() == 0
    assert whole.equals(whole.sort("recording_id", "platform", "external_id"))
    assert all(whole.equals(other) for other in others)


def test_record_names_a_release_before_those_that_list_it(world: World) -> None:
    world.recording(1, "catalog_b", "b", "Song", NOVA, release_id="named")
    world.recording(2, "catalog_b", "c", "Other", NOVA)
    for release in ("also", "named"):
        world.release("catalog_b", release, f"Album {release}", NOVA, tracks=("b", "c"))
    build_source_values(world.write())
    rows = world.read("recording_source").select("external_id", "release_id", "release_title")
    assert sorted(rows.rows()) == [("b", "named", "Album named"), ("c", "also", "Album also")]


def test_release_without_a_row_keeps_its_id_and_its_genres(world: World) -> None:
    world.recording(1, "streamsvc_a", "a", "Song", NOVA, release_id="unknown")
    world.add("source_genre", "streamsvc_a", **_genre("release", "unknown", "Pop"))
    build_source_values(world.write())
    (row,) = world.read("recording_source").to_dicts()
    assert (row["release_id"], row["release_title"], row["release_date_entity"]) == ("unknown", None, None)
    assert row["release_genres"] == ["Pop"]


def test_same_id_of_two_platforms_is_two_releases(world: World) -> None:
    for recording, platform in enumerate(("streamsvc_a", "catalog_b"), 1):
        world.recording(recording, platform, "x", "Song", NOVA, release_id="r")
        world.release(platform, "r", f"Album of {platform}", NOVA, tracks=("x",))
    build_source_values(world.write())
    assert {*world.read("recording_source").select("platform", "release_title").iter_rows()} == {
        ("streamsvc_a", "Album of streamsvc_a"),
        ("catalog_b", "Album of catalog_b"),
    }


def test_world_without_a_record_has_no_source_value(world: World) -> None:
    assert build_source_values(world.write()) == {"source_values": 0, "rejects": 0}


def _genre(kind: str, owner: str, genre: str) -> dict[str, object]:
    return {"entity_kind": kind, "entity_id": owner, "position": 0, "genre": genre, "genre_id": None, "parent": None, "votes": None}
