from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts
from pipeline.build import source_values
from pipeline.build.artists import build_artists
from pipeline.build.labels import build_labels
from pipeline.build.recordings import build_recordings
from pipeline.build.releases import build_releases
from pipeline.build.source_values import build_source_values

from .conftest import credit

if TYPE_CHECKING:
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


def test_source_values_are_the_same_in_parts_of_any_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(11):
        for platform in ("streamsvc_a", "catalog_b"):
            world.recording(20 - number, platform, f"{platform}-{number}", f"Song {number}", NOVA, isrcs=[f"GBAYE00001{number:02}"])
    paths, found = world.write(), []
    for rows, most in ((1_000, 1_000), (3, 1_000), (3, 0)):
        monkeypatch.setattr(source_values, "MOST_ROWS_SORTED", most)
        monkeypatch.setitem(TABLES, "recording_source", replace(TABLES["recording_source"], rows_per_part=rows))
        build_source_values(paths)
        found.append((world.read("recording_source"), [part.read_bytes() for part in list_parts(paths.table("recording_source"))]))
    (whole, _), (even, parts), (by_part, same_parts) = found
    assert whole.height == 22
    assert whole.equals(even)
    assert whole.equals(by_part)
    assert len(parts) == 8
    assert parts == same_parts


@pytest.mark.parametrize("most", [0, -1])
def test_world_without_a_record_has_no_source_value(world: World, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(source_values, "MOST_ROWS_SORTED", most)
    assert build_source_values(world.write()) == {"source_values": 0, "rejects": 0}
