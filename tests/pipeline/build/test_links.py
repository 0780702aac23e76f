from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.build.links import build_links

from .conftest import credit

if TYPE_CHECKING:
    from .conftest import World

NOVA = credit("Nova", "n")
OLD = "00000000-0000-0000-0000-000000000001"
NEW = "00000000-0000-0000-0000-000000000002"


def test_links_are_the_records_own_ids_and_catalog_a_shows_the_release(world: World) -> None:
    world.recording(1, "catalog_a", "77-1", "Song", NOVA, link_id="77")
    world.recording(2, "catalog_a", "77-2", "Else", NOVA, link_id="77")
    world.recording(1, "store_a", "5", "Song", NOVA, slug="song")
    build_links(world.write())
    assert world.rows_of("platform_link") == [(1, "catalog_a", "77", None), (1, "store_a", "5", "song"), (2, "catalog_a", "77", None)]


def test_relations_of_others_add_links_and_remove_none(world: World) -> None:
    world.recording(1, "catalog_b", NEW, "Song", NOVA)
    world.recording(2, "streamsvc_a", "taken", "Else", NOVA)
    said = {"entity_kind": "recording", "entity_id": NEW}
    world.add("source_link", "catalog_b", **said, target_platform="streamsvc_a", target_kind="recording", target_id="taken")
    world.add("source_link", "catalog_b", **said, target_platform="streamsvc_a", target_kind="recording", target_id="absent")
    world.add("source_link", "catalog_b", **said, target_platform="video_a", target_kind="video", target_id="dQw4w9WgXcQ")
    build_links(world.write())
    assert world.rows_of("platform_link") == [
        (1, "catalog_b", NEW, None),
        (1, "streamsvc_a", "absent", None),
        (1, "video_a", "dQw4w9WgXcQ", None),
        (2, "streamsvc_a", "taken", None),
    ]


def test_a_release_video_is_linked_only_when_the_release_has_one_track(world: World) -> None:
    for number, external_id in ((1, "7-1"), (2, "8-1"), (3, "8-2")):
        world.recording(number, "catalog_a", external_id, "Song", NOVA, link_id=external_id[0])
    world.release("catalog_a", "7", "Single", NOVA, tracks=("7-1",), track_count=1)
    world.release("catalog_a", "8", "Album", NOVA, tracks=("8-1", "8-2"), track_count=2)
    for release in ("7", "8"):
        world.add(
            "source_link",
            "catalog_a",
            entity_kind="release",
            entity_id=release,
            target_platform="video_a",
            target_kind="video",
            target_id=f"v{release}",
        )
    build_links(world.write())
    assert [row for row in world.rows_of("platform_link") if row[1] == "video_a"] == [(1, "video_a", "v7", None)]


def test_release_linked_to_catalog_a_gives_its_recordings_that_link(world: World) -> None:
    world.recording(1, "catalog_b", NEW, "Song", NOVA)
    world.release("catalog_b", "rel", "Album", NOVA, tracks=(NEW,))
    world.add(
        "source_link",
        "catalog_b",
        entity_kind="release",
        entity_id="rel",
        target_platform="catalog_a",
        target_kind="release",
        target_id="99",
    )
    build_links(world.write())
    assert world.rows_of("platform_link")[0] == (1, "catalog_a", "99", None)


def test_retired_platform_ids_are_kept_if_the_successor_is_linked(world: World) -> None:
    world.recording(1, "catalog_b", NEW, "Song", NOVA)
    world.add("source_redirect", "catalog_b", entity_kind="recording", old_id=OLD, new_id=NEW)
    world.add("source_redirect", "catalog_b", entity_kind="recording", old_id="gone", new_id="unknown")
    world.add("source_redirect", "catalog_b", entity_kind="artist", old_id="x", new_id=NEW)
    build_links(world.write())
    assert world.rows_of("external_redirect") == [("catalog_b", OLD, NEW)]
