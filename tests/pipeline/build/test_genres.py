from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.build.genres import build_genres

from .conftest import credit

if TYPE_CHECKING:
    from .conftest import World

NOVA = credit("Nova", "n")


def genres(world: World, *columns: str) -> list[tuple[object, ...]]:
    build_genres(world.write())
    named = world.read("recording_genre").join(world.read("genre").select("genre_id", "name"), on="genre_id")
    return named.sort("recording_id", "position").select("recording_id", "name", *columns).rows()


def test_the_tree_has_25_mains_and_subgenres_name_their_main(world: World) -> None:
    world.recording(1, "store_a", "s", "Song", NOVA)
    genres(world)
    tree = world.read("genre")
    assert tree.filter(type="main").height == 25
    organic = tree.filter(name="Organic House").row(0, named=True)
    assert (organic["level"], organic["main_name"]) == (2, "House")
    assert tree.filter(genre_id=organic["parent_id"])["name"].item() == "Deep House"


def test_the_first_platform_of_the_chain_decides_with_its_evidence(world: World) -> None:
    world.recording(1, "store_a", "s", "Song", NOVA)
    world.recording(1, "streamsvc_a", "a", "Song", NOVA)
    world.add("source_genre", "store_a", entity_kind="recording", entity_id="s", genre="Melodic House & Techno")
    world.add("source_genre", "streamsvc_a", entity_kind="artist", entity_id="n", genre="adelaide punk")
    assert genres(world, "platform", "genre", "rule_id") == [
        (1, "Melodic House", "store_a", "Melodic House & Techno", "store-melodic-house-techno"),
        (1, "Melodic Techno", "store_a", "Melodic House & Techno", "store-melodic-house-techno"),
    ]


def test_more_direct_levels_go_first_and_artists_last(world: World) -> None:
    world.recording(1, "catalog_b", "r", "Song", NOVA)
    world.release("catalog_b", "rel", "Album", NOVA, tracks=("r",))
    world.recording(2, "catalog_b", "other", "Else", NOVA)
    world.add("source_genre", "catalog_b", entity_kind="release", entity_id="rel", genre="jazz")
    world.add("source_genre", "catalog_b", entity_kind="artist", entity_id="n", genre="children's music")
    assert genres(world) == [(1, "Jazz"), (2, "Children's Music")]


def test_rare_votes_are_ignored(world: World) -> None:
    world.recording(1, "catalog_b", "r", "Song", NOVA)
    for place, (tag, votes) in enumerate((("techno", 40), ("house", 5), ("polka", 3))):
        world.add("source_genre", "catalog_b", entity_kind="recording", entity_id="r", genre=tag, votes=votes, position=place)
    assert genres(world) == [(1, "Techno"), (1, "House")]


def test_an_umbrella_says_nothing_beside_a_dance_main(world: World) -> None:
    world.recording(1, "catalog_a", "7-1", "Song", NOVA)
    world.release("catalog_a", "7", "Album", NOVA, tracks=("7-1",))
    world.add("source_genre", "catalog_a", entity_kind="release", entity_id="7", genre="Electronic", position=0)
    world.add("source_genre", "catalog_a", entity_kind="release", entity_id="7", genre="Deep House", parent="Electronic", position=1)
    assert genres(world) == [(1, "Deep House")]


def test_what_two_other_platforms_agree_on_is_added_behind(world: World) -> None:
    for platform, genre in (("store_a", "Techno"), ("catalog_b", "ambient"), ("streamsvc_c", "Ambient"), ("streamsvc_b", "Jazz")):
        world.recording(1, platform, platform, "Song", NOVA)
        world.add("source_genre", platform, entity_kind="recording", entity_id=platform, genre=genre)
    assert genres(world, "platform") == [(1, "Techno", "store_a"), (1, "Ambient", "catalog_b")]


def test_unclassifiable_strings_are_never_returned_but_weighed(world: World) -> None:
    for number in (1, 2):
        world.recording(number, "catalog_b", f"r{number}", "Song", NOVA)
        world.add("source_genre", "catalog_b", entity_kind="recording", entity_id=f"r{number}", genre="house of pain")
    world.add("source_genre", "catalog_b", entity_kind="recording", entity_id="r2", genre="jazz")
    world.add("source_genre", "catalog_b", entity_kind="recording", entity_id="r2", genre="seen live")
    assert genres(world) == [(2, "Jazz")]
    assert world.rows_of("unclassified_genre_string") == [("catalog_b", "", "house of pain", 2, 1)]


def test_the_parent_of_the_source_decides_what_a_word_means(world: World) -> None:
    for number, parent in ((1, "Rock"), (2, "Electronic"), (3, "Hip Hop")):
        world.recording(number, "catalog_a", f"{number}-1", "Song", NOVA)
        world.release("catalog_a", str(number), "Album", NOVA, tracks=(f"{number}-1",))
        world.add("source_genre", "catalog_a", entity_kind="release", entity_id=str(number), genre="Hardcore", parent=parent)
    assert genres(world) == [(1, "Hardcore Punk"), (2, "Hardcore"), (3, "Hardcore Hip-Hop")]


def test_order_of_rows_does_not_matter(world: World) -> None:
    for number in range(30):
        world.recording(number + 1, "catalog_b", f"r{number}", "Song", NOVA)
        for place, tag in enumerate(("jazz", "soul", "funk", "techno")):
            world.add(
                "source_genre", "catalog_b", entity_kind="recording", entity_id=f"r{number}", genre=tag, votes=1 + place % 2, position=place
            )
    before = genres(world, "platform", "genre", "rule_id", "position")
    world.rows["catalog_b", "source_genre"].reverse()
    assert genres(world, "platform", "genre", "rule_id", "position") == before
    assert pl.DataFrame(before, orient="row").height == 120
