"""Tests of the other titles of recordings: which titles reach a recording, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.build.title_aliases import MOST_TITLES, build_title_aliases
from tests.pipeline.build.conftest import credit

if TYPE_CHECKING:
    from tests.pipeline.build.conftest import World


def build(world: World, *performed: tuple[str, int]) -> list[tuple[object, ...]]:
    paths = world.write()
    titles = {m["recording_id"]: row["title"] for m in world.members for row in world.rows[m["platform"], "source_recording"][:1]}
    shown = [
        {
            "recording_id": number,
            "title": title,
            "variant": "",
            "artist_credit": "A",
            "popularity": 0.5,
            "source_count": 1,
            "platform_count": 1,
        }
        for number, title in sorted(titles.items())
    ]
    world._write("recording", shown)
    world._write("work_recording", [{"iswc": code, "recording_id": number} for code, number in performed])
    build_title_aliases(paths)
    return world.rows_of("recording_alias")


def test_titles_of_a_record_and_of_its_work_reach_the_recording_with_their_locale(world: World) -> None:
    world.recording(1, "catalog_b", "r", "Fireworks", credit("Daoko"))
    world.add("source_title", "catalog_b", entity_kind="recording", entity_id="r", title="打上花火", locale="ja")
    world.add("source_title", "catalog_b", entity_kind="recording", entity_id="r", title="Fireworks", locale="en")
    world.add("source_title", "catalog_b", entity_kind="recording", entity_id="unknown", title="Nothing", locale="en")
    world.add("source_title", "catalog_b", entity_kind="work", entity_id="w", title="Uchiage Hanabi", locale=None)
    world.add("source_title", "catalog_b", entity_kind="work", entity_id="not performed", title="Nothing")
    world.add("source_work_recording", "catalog_b", work_id="w", recording_platform="catalog_b", external_id="r")
    assert build(world) == [
        (1, "Uchiage Hanabi", "work", "catalog_b", None),
        (1, "打上花火", "recording", "catalog_b", "ja"),
    ]


def test_the_halves_of_a_title_with_its_translation_are_titles_and_a_list_of_songs_is_not(world: World) -> None:
    world.recording(1, "catalog_a", "1-1", "Звезда = Star", credit("Kino"))
    world.recording(2, "catalog_a", "1-2", "A = B = C = D = E", credit("Kino"))
    world.recording(3, "streamsvc_a", "x", "E = Mc", credit("Big Audio"))
    assert build(world)[:2] == [(1, "Star", "parallel", "catalog_a", None), (1, "Звезда", "parallel", "catalog_a", None)]
    assert {row[0] for row in world.rows_of("recording_alias")} == {1}


def test_a_recording_has_a_bounded_number_of_titles_and_its_own_before_those_of_its_work(world: World) -> None:
    world.recording(1, "catalog_b", "r", "Song", credit("A"))
    world.add("source_title", "catalog_b", entity_kind="recording", entity_id="r", title="Zuletzt", locale="de")
    world.add("source_work_recording", "catalog_b", work_id="w", recording_platform="catalog_b", external_id="r")
    for number in range(2 * MOST_TITLES):
        world.add("source_title", "catalog_b", entity_kind="work", entity_id="w", title=f"Title {number:03d}")
    found = build(world)
    assert len(found) == MOST_TITLES
    assert (1, "Zuletzt", "recording", "catalog_b", "de") in found


def test_titles_of_composition_data_reach_the_recordings_that_perform_the_work(world: World) -> None:
    world.recording(1, "streamsvc_a", "a", "Autumn Leaves", credit("Edith"))
    world.recording(2, "streamsvc_a", "b", "Autumn Leaves", credit("Refused"))
    titles = ["AUTUMN LEAVES", "Autumn Leaves", "LES FEUILLES MORTES"]
    world.add("source_work", "works", work_id="w", iswc="T0000000010", title="AUTUMN LEAVES", alternative_titles=titles)
    world.add("source_work", "works", work_id="x", iswc="T0000000021", title="OTHER", alternative_titles=None)
    world.add("source_work_recording", "works", work_id="w", isrc="AAAAA0000001")
    found = build(world, ("T0000000010", 1), ("T0000000021", 1))
    assert found == [(1, "AUTUMN LEAVES", "work", "works", None), (1, "LES FEUILLES MORTES", "work", "works", None)]
