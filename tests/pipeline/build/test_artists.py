from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.build.artists import build_artists
from pipeline.build.identity import group_nodes

from .conftest import credit

if TYPE_CHECKING:
    from .conftest import World


def ids(world: World) -> dict[str, int]:
    return {f"{platform}:{external_id}": artist_id for platform, external_id, artist_id in world.rows_of("artist_source")}


def test_a_name_that_no_platform_knows_twice_is_one_artist_everywhere(world: World) -> None:
    world.recording(1, "streamsvc_a", "a1", "One", credit("Beyoncé", "sa1"))
    world.recording(2, "store_a", "s1", "Two", credit("BEYONCE", "st1"))
    world.recording(3, "streamsvc_b", "b1", "Three", credit("Beyonce"))
    build_artists(world.write())
    found = ids(world)
    assert found["streamsvc_a:sa1"] == found["store_a:st1"] == found["streamsvc_b:name:beyonce"]
    assert world.read("artist")["name"].to_list().count("Beyoncé") == 1


def test_numbered_namesakes_stay_apart_and_evidence_says_which_one_a_platform_means(world: World) -> None:
    world.add("source_artist", "catalog_a", artist_id="c1", name="Nova")
    world.add("source_artist", "catalog_a", artist_id="c2", name="Nova (2)")
    world.recording(1, "catalog_a", "7-1", "Left", credit("Nova", "c1"))
    world.recording(2, "catalog_a", "8-1", "Right", credit("Nova (2)", "c2"))
    world.recording(2, "streamsvc_a", "a2", "Right", credit("Nova", "s2"))
    world.recording(3, "store_a", "t3", "Elsewhere", credit("Nova", "t1"))
    build_artists(world.write())
    found = ids(world)
    assert found["streamsvc_a:s2"] == found["catalog_a:c2"]
    assert len({found["catalog_a:c1"], found["catalog_a:c2"], found["store_a:t1"]}) == 3
    assert set(world.read("artist").filter(pl.col("artist_id").is_in([found["catalog_a:c1"], found["catalog_a:c2"]]))["name"]) == {"Nova"}


def test_a_numbered_name_proves_namesakes_even_when_the_first_is_not_in_the_dump(world: World) -> None:
    world.add("source_artist", "catalog_a", artist_id="c2", name="Nova (2)")
    world.recording(1, "catalog_a", "8-1", "Right", credit("Nova (2)", "c2"))
    world.recording(2, "streamsvc_a", "a2", "Other", credit("Nova", "s2"))
    build_artists(world.write())
    assert ids(world)["catalog_a:c2"] != ids(world)["streamsvc_a:s2"]


def test_a_bare_name_of_several_bearers_is_the_one_credited_by_id_on_the_same_recording(world: World) -> None:
    world.recording(1, "streamsvc_a", "a1", "Left", credit("Nova", "s1"))
    world.recording(2, "streamsvc_a", "a2", "Right", credit("Nova", "s2"))
    world.recording(1, "streamsvc_b", "b1", "Left", credit("Nova"))
    world.recording(2, "streamsvc_b", "b2", "Right", credit("Nova"))
    build_artists(world.write())
    found = ids(world)
    credited = {(row[1], row[2]): row[4] for row in world.rows_of("source_credit")}
    assert credited["streamsvc_b", "b1"] == found["streamsvc_a:s1"]
    assert credited["streamsvc_b", "b2"] == found["streamsvc_a:s2"]


def test_placeholders_of_all_platforms_are_one_artist(world: World) -> None:
    world.add("source_artist", "catalog_a", artist_id="194", name="Various", is_placeholder=True)
    world.add("source_artist", "catalog_b", artist_id="89ad", name="Various Artists", is_placeholder=True)
    world.release("catalog_a", "r1", "Hits", credit("Various", "194"))
    world.release("catalog_b", "r2", "Hits", credit("Various Artists", "89ad"))
    build_artists(world.write())
    assert ids(world)["catalog_a:194"] == ids(world)["catalog_b:89ad"]


def test_a_record_without_artists_is_credited_by_its_display_string_and_never_split(world: World) -> None:
    world.recording(1, "streamsvc_b", "b1", "Song", artist_credit="Earth, Wind & Fire")
    world.recording(2, "streamsvc_b", "b2", "Nobody's")
    build_artists(world.write())
    assert [row[5] for row in world.rows_of("source_credit")] == ["Earth, Wind & Fire", "Unknown Artist"]


def test_a_remixer_named_by_the_title_is_the_artist_credited_on_the_recording(world: World) -> None:
    world.recording(1, "streamsvc_a", "a1", "Song - Kask Extended Remix", credit("Nova", "s1"), credit("Kask", "s2"))
    world.recording(2, "catalog_a", "9-1", "Tune (Remix)", credit("Nova", "c1"))
    world.recording(3, "catalog_a", "9-2", "Tune (Club Remix)", credit("Nova", "c1"))
    build_artists(world.write())
    named = world.read("source_credit").filter("is_named_by_title")
    assert named.select("recording_id", "artist_id", "role").rows() == [(1, ids(world)["streamsvc_a:s2"], "remixer")]


def test_joint_remixers_are_split_only_when_both_are_known(world: World) -> None:
    for number, name in enumerate(("Kask", "Moor")):
        world.add("source_artist", "streamsvc_a", artist_id=f"s{number}", name=name)
    world.recording(1, "store_a", "t1", "Song", credit("Nova", "t9"), version="Kask & Moor Remix")
    world.recording(2, "store_a", "t2", "Song", credit("Nova", "t9"), version="Simon & Nobody Remix")
    build_artists(world.write())
    named = world.read("source_credit").filter("is_named_by_title")
    assert named["name"].to_list() == ["Kask", "Moor", "Simon & Nobody"]


def test_rows_in_any_order_give_the_same_tables(world: World) -> None:
    for number in range(20):
        world.recording(number + 1, "streamsvc_a", f"a{number}", "Song", credit(f"Name {number % 7}", f"s{number % 7}"))
        world.recording(number + 1, "store_a", f"t{number}", "Song", credit(f"Name {number % 7}", f"t{number % 5}"))
    build_artists(world.write())
    before = [world.read(name) for name in ("artist", "artist_source", "source_credit")]
    for rows in world.rows.values():
        rows.reverse()
    build_artists(world.write())
    for table, name in zip(before, ("artist", "artist_source", "source_credit"), strict=True):
        assert world.read(name).equals(table)


def test_mutual_best_partners_join_and_a_weaker_claim_does_not() -> None:
    nodes = pl.DataFrame(
        {
            "node": [1, 2, 3],
            "platform": ["catalog_a", "catalog_a", "store_a"],
            "key": ["nova"] * 3,
            "is_numbered": [False] * 3,
            "is_placeholder": [False] * 3,
        }
    )
    evidence = pl.DataFrame({"node_a": [1, 3, 2, 3], "node_b": [3, 1, 3, 2], "shared": [8, 8, 1, 1]})
    assert dict(group_nodes(nodes, evidence).iter_rows()) == {1: 1, 2: 2, 3: 1}
