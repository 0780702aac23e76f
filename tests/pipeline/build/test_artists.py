from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.build import artist_evidence, workbench
from pipeline.build.artist_evidence import is_one_spelling, is_short_form
from pipeline.build.artists import build_artists
from pipeline.build.identity import separate_platforms

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


def test_numbered_namesakes_stay_apart_and_evidence_identifies_the_one_of_a_platform(world: World) -> None:
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


def test_bare_name_of_several_bearers_is_the_artist_credited_by_id_on_the_recording(world: World) -> None:
    world.recording(1, "streamsvc_a", "a1", "Left", credit("Nova", "s1"))
    world.recording(2, "streamsvc_a", "a2", "Right", credit("Nova", "s2"))
    world.recording(1, "streamsvc_b", "b1", "Left", credit("Nova"))
    world.recording(2, "streamsvc_b", "b2", "Right", credit("Nova"))
    build_artists(world.write())
    found = ids(world)
    credited = {(row[1], row[2]): row[4] for row in world.rows_of("source_credit")}
    assert credited["streamsvc_b", "b1"] == found["streamsvc_a:s1"]
    assert credited["streamsvc_b", "b2"] == found["streamsvc_a:s2"]


def test_bare_name_is_a_separate_artist_only_if_no_artist_of_that_name_is_known(world: World) -> None:
    for number, artist in ((1, "s1"), (2, "s2")):
        world.recording(number, "streamsvc_a", f"a{number}", f"Song {number}", credit("Nova", artist))
        world.recording(number, "streamsvc_b", f"b{number}", f"Song {number}", credit("Nova"))
    build_artists(world.write())
    assert world.read("artist")["name"].to_list().count("Nova") == 2
    assert "streamsvc_b:name:nova" not in ids(world)
    assert len(world.rows_of("source_credit")) == 4
    world.recording(3, "streamsvc_b", "b3", "Song 3", credit("Nova"))
    build_artists(world.write())
    assert world.read("artist")["name"].to_list().count("Nova") == 3
    assert {row[2]: row[4] for row in world.rows_of("source_credit")}["b3"] == ids(world)["streamsvc_b:name:nova"]


def test_bare_name_on_a_release_is_an_artist(world: World) -> None:
    for number, artist in ((1, "s1"), (2, "s2")):
        world.recording(number, "streamsvc_a", f"a{number}", f"Song {number}", credit("Nova", artist))
    world.release("streamsvc_b", "r", "Album", credit("Nova"))
    build_artists(world.write())
    assert ids(world)["streamsvc_b:name:nova"] not in {ids(world)["streamsvc_a:s1"], ids(world)["streamsvc_a:s2"]}


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
    tables = ("artist", "artist_alias", "artist_source", "source_credit")
    for number in range(7):
        aliases = [f"Other {number}", f"NAME {number}", f"Name {(number + 1) % 9}"]
        world.add("source_artist", "catalog_b", artist_id=f"b{number}", name=f"Name {number}", sort_name=f"{number}, Name", aliases=aliases)
    for number in range(20):
        world.recording(number + 1, "streamsvc_a", f"a{number}", "Song", credit(f"Name {number % 7}", f"s{number % 7}"))
        world.recording(number + 1, "store_a", f"t{number}", "Song", credit(f"NAME {number % 7}", f"t{number % 5}"))
        world.recording(number + 1, "catalog_b", f"c{number}", "Song", credit(f"Other {number % 7}", f"b{number % 7}"))
    build_artists(world.write())
    before = [world.read(name) for name in tables]
    for rows in world.rows.values():
        rows.reverse()
        for row in rows:
            row.get("aliases", []).reverse()
    build_artists(world.write())
    for table, name in zip(before, tables, strict=True):
        assert world.read(name).equals(table)


def test_one_artist_over_six_platforms_is_one_however_it_is_spelt(world: World) -> None:
    spellings = {
        "streamsvc_a": "The Nova & Kask Band",
        "streamsvc_b": "Nova and Kask Band",
        "streamsvc_c": "NOVA & KASK BAND",
        "store_a": "Nova & Kask Bnad",
        "catalog_a": "Nova & Kask Band, The",
        "catalog_b": "The Nova & Kask Band",
    }
    for platform, name in spellings.items():
        for number in (1, 2):
            world.recording(number, platform, f"{platform}-{number}", f"Song {number}", credit(name, f"{platform}-id"))
    build_artists(world.write())
    assert len({artist for key, artist in ids(world).items() if key.endswith("-id")}) == 1


def songs(world: World, platform: str, artist: str, numbers: range, label: str, registrant: str, name: str = "Nova") -> None:
    """Add an artist's songs on one platform, all on one release of one label."""
    tracks = []
    for number in numbers:
        external_id = f"{platform}-{number}"
        isrc = f"US{registrant}2600{number:03d}"
        world.recording(number, platform, external_id, f"Song {number}", credit(name, artist), isrcs=[isrc])
        tracks.append(external_id)
    world.release(platform, f"{platform}-{label}", f"Album of {registrant}", credit(name, artist), tracks=tuple(tracks), label_name=label)


def test_namesakes_with_nothing_in_common_are_two_artists(world: World) -> None:
    for platform in ("streamsvc_a", "streamsvc_b", "catalog_a"):
        songs(world, platform, f"{platform}-x", range(1, 6), "Anvil Records", "AAA")
    for platform in ("streamsvc_c", "store_a", "catalog_b"):
        songs(world, platform, f"{platform}-y", range(11, 16), "Bellows", "BBB")
    build_artists(world.write())
    found = ids(world)
    first = {found[f"{platform}:{platform}-x"] for platform in ("streamsvc_a", "streamsvc_b", "catalog_a")}
    second = {found[f"{platform}:{platform}-y"] for platform in ("streamsvc_c", "store_a", "catalog_b")}
    assert (len(first), len(second)) == (1, 1)
    assert first != second


def test_namesakes_with_a_common_label_are_one_artist(world: World) -> None:
    songs(world, "streamsvc_a", "x", range(1, 8), "Anvil Records", "AAA")
    songs(world, "store_a", "y", range(11, 18), "Anvil", "BBB")
    build_artists(world.write())
    assert ids(world)["streamsvc_a:x"] == ids(world)["store_a:y"]


@pytest.mark.parametrize(
    ("name", "labels", "registrants", "is_one"),
    [
        # Two platforms carry different parts of an artist's works, and no evidence separates two persons.
        ("Frank Sinatra", ("Capitol", ""), ("AAA", "AAA"), True),
        ("Nova", ("Anvil", ""), ("AAA", "AAA"), True),
        # An artist changes the label, which says little against a full name.
        ("Frank Sinatra", ("Capitol", "Reprise"), ("AAA", "AAA"), True),
        ("Frank Sinatra", ("Capitol", "Reprise"), ("AAA", "BBB"), False),
        ("Nova", ("Anvil", "Bellows"), ("AAA", "BBB"), False),
        ("Nova", ("", ""), ("AAA", "BBB"), False),
    ],
)
def test_works_that_never_meet_part_a_name_only_beside_facts(
    world: World, name: str, labels: tuple[str, str], registrants: tuple[str, str], *, is_one: bool
) -> None:
    songs(world, "catalog_a", "x", range(1, 25), labels[0] or "Not On Label", registrants[0], name)
    songs(world, "streamsvc_c", "y", range(31, 40), labels[1] or "Not On Label", registrants[1], name)
    if registrants[0] == registrants[1]:  # without codes, so that no registrant is in common
        for row in (*world.rows["catalog_a", "source_recording"], *world.rows["streamsvc_c", "source_recording"]):
            row["isrcs"] = []
    build_artists(world.write())
    assert (ids(world)["catalog_a:x"] == ids(world)["streamsvc_c:y"]) == is_one


def test_name_of_two_artists_on_a_platform_separates_works_that_never_meet(world: World) -> None:
    for platform, artist, first in (("catalog_a", "x", 1), ("streamsvc_c", "y", 11), ("streamsvc_c", "z", 21)):
        for number in range(first, first + 8):
            world.recording(number, platform, f"{platform}-{number}", f"Song {number}", credit("John Williams", artist))
    build_artists(world.write())
    assert len({ids(world)[key] for key in ("catalog_a:x", "streamsvc_c:y", "streamsvc_c:z")}) == 3


@pytest.mark.parametrize("label", ["Nova Records", "Not On Label"])
def test_label_named_like_the_artist_or_a_missing_one_is_not_a_common_label(world: World, label: str) -> None:
    songs(world, "streamsvc_a", "x", range(1, 8), label, "AAA")
    songs(world, "store_a", "y", range(11, 18), label, "BBB")
    build_artists(world.write())
    assert ids(world)["streamsvc_a:x"] != ids(world)["store_a:y"]


def test_a_single_song_in_common_does_not_join_two_large_catalogues_with_nothing_else_in_common(world: World) -> None:
    songs(world, "streamsvc_a", "x", range(1, 12), "Anvil", "AAA")
    songs(world, "store_a", "y", range(21, 32), "Bellows", "BBB")
    world.recording(40, "streamsvc_a", "streamsvc_a-40", "Love", credit("Nova", "x"))
    world.recording(40, "store_a", "store_a-40", "Love", credit("Nova", "y"))
    build_artists(world.write())
    assert ids(world)["streamsvc_a:x"] != ids(world)["store_a:y"]


def test_bare_name_joins_no_namesakes(world: World) -> None:
    songs(world, "streamsvc_a", "x", range(1, 6), "Anvil", "AAA")
    songs(world, "store_a", "y", range(11, 16), "Bellows", "BBB")
    world.recording(1, "streamsvc_b", "b1", "Song 1", credit("Nova"))
    world.recording(11, "streamsvc_b", "b11", "Song 11", credit("Nova"))
    build_artists(world.write())
    found = ids(world)
    assert found["streamsvc_a:x"] != found["store_a:y"]
    credited = {row[2]: row[4] for row in world.rows_of("source_credit")}
    assert (credited["b1"], credited["b11"]) == (found["streamsvc_a:x"], found["store_a:y"])


def test_artist_listed_without_works_joins_only_a_single_bearer_of_the_name(world: World) -> None:
    for name, artists in (("Nova", ("n1",)), ("Kask", ("k1", "k2"))):
        for artist in artists:
            world.add("source_artist", "streamsvc_a", artist_id=artist, name=name)
        world.add("source_artist", "store_a", artist_id=f"{name}-listed", name=name)
        world.recording(len(world.members), "streamsvc_a", f"{name}-1", "Song", credit(name, artists[0]))
    build_artists(world.write())
    found = ids(world)
    assert found["store_a:Nova-listed"] == found["streamsvc_a:n1"]
    assert found.keys().isdisjoint({"store_a:Kask-listed", "streamsvc_a:k2"})  # no recording of the catalog names them


def test_a_renamed_artist_is_one_where_a_catalog_lists_the_other_name(world: World) -> None:
    world.add("source_artist", "catalog_b", artist_id="b", name="Ostara Vale", aliases=["Moth Parade"])
    for number in (1, 2):
        world.recording(number, "catalog_b", f"b{number}", "Song", credit("Ostara Vale", "b"))
        world.recording(number, "streamsvc_a", f"a{number}", "Song", credit("Moth Parade", "a"))
        world.recording(number, "store_a", f"s{number}", "Song", credit("Quite Another", "s"))
    build_artists(world.write())
    found = ids(world)
    assert found["catalog_b:b"] == found["streamsvc_a:a"] != found["store_a:s"]


def test_listed_name_alone_joins_no_artists(world: World) -> None:
    world.add("source_artist", "catalog_b", artist_id="b", name="Ostara Vale", aliases=["Moth"])
    world.recording(1, "catalog_b", "b1", "Song", credit("Ostara Vale", "b"))
    world.recording(2, "streamsvc_a", "a2", "Tune", credit("Moth", "a"))
    build_artists(world.write())
    assert ids(world)["catalog_b:b"] != ids(world)["streamsvc_a:a"]


@pytest.mark.parametrize(
    ("others", "is_one"), [((), True), ((("catalog_b", "Moth Hall", ["Moth"]),), False), ((("catalog_b", "Moth", []),), False)]
)
def test_listed_name_of_one_artist_alone_joins_with_a_fact_in_common(
    world: World, others: tuple[tuple[str, str, list[str]], ...], *, is_one: bool
) -> None:
    world.add("source_artist", "catalog_b", artist_id="b", name="Ostara Vale", aliases=["Moth"])
    for number, (platform, name, aliases) in enumerate(others):
        world.add("source_artist", platform, artist_id=f"o{number}", name=name, aliases=aliases)
    world.recording(1, "catalog_b", "b1", "Song", credit("Ostara Vale", "b"))
    world.recording(2, "streamsvc_a", "a2", "Tune", credit("Moth", "a"))
    for platform, artist in (("catalog_b", "b"), ("streamsvc_a", "a")):
        world.add("source_genre", platform, entity_kind="artist", entity_id=artist, genre="Jazz")
    build_artists(world.write())
    assert (ids(world)["catalog_b:b"] == ids(world)["streamsvc_a:a"]) == is_one


def test_listed_name_that_proves_nothing_forbids_nothing(world: World) -> None:
    world.add("source_artist", "catalog_b", artist_id="b", name="Lunneard Lunaltaa", aliases=["Lunneard Lunalata"])
    world.recording(1, "catalog_b", "b1", "Song", credit("Lunneard Lunaltaa", "b"))
    world.recording(1, "streamsvc_a", "a1", "Song", credit("Lunneard Lunalata", "a"))
    world.recording(2, "store_a", "s2", "Tune", credit("Lunneard Lunalata", "s"))
    build_artists(world.write())
    found = ids(world)
    assert found["catalog_b:b"] == found["streamsvc_a:a"] == found["store_a:s"]


def test_sort_name_is_a_listed_name(world: World) -> None:
    world.add("source_artist", "catalog_b", artist_id="b", name="宇多田ヒカル", sort_name="Utada, Hikaru")
    for number in (1, 2, 3):
        world.recording(number, "catalog_b", f"b{number}", "Song", credit("宇多田ヒカル", "b"))
        world.recording(number + 2, "streamsvc_a", f"a{number}", "Song", credit("Hikaru Utada", "a"))
    build_artists(world.write())
    assert ids(world)["catalog_b:b"] == ids(world)["streamsvc_a:a"]


def test_link_to_another_platform_identifies_the_namesake(world: World) -> None:
    world.add("source_artist", "catalog_b", artist_id="b1", name="Nova")
    world.add("source_artist", "catalog_b", artist_id="b2", name="Nova")
    world.add(
        "source_link", "catalog_b", entity_kind="artist", entity_id="b2", target_platform="store_a", target_id="s", target_kind="artist"
    )
    for number, artist in ((1, "b1"), (2, "b2")):
        world.recording(number, "catalog_b", f"r{number}", "Song", credit("Nova", artist))
    world.recording(3, "store_a", "s3", "Other", credit("Nova", "s"))
    build_artists(world.write())
    found = ids(world)
    assert found["store_a:s"] == found["catalog_b:b2"] != found["catalog_b:b1"]


def test_common_recording_under_unlike_names_joins_no_artists(world: World) -> None:
    for number in (1, 2, 3):
        world.recording(number, "streamsvc_a", f"a{number}", "Song", credit("Composer", "a"))
        world.recording(number, "store_a", f"s{number}", "Song", credit("Orchestra", "s"))
    build_artists(world.write())
    assert ids(world)["streamsvc_a:a"] != ids(world)["store_a:s"]


def test_similar_names_on_one_list_are_two_artists(world: World) -> None:
    for number in (1, 2):
        world.recording(number, "streamsvc_a", f"a{number}", "Song", credit("Marlene Dovak", "x"), credit("Marlene Dovac"))
        world.recording(number, "store_a", f"s{number}", "Song", credit("Marlene Dovac", "z"))
    build_artists(world.write())
    assert ids(world)["streamsvc_a:x"] != ids(world)["store_a:z"]


def test_a_joined_name_without_ids_is_cut_where_its_first_part_is_an_artist(world: World) -> None:
    world.recording(1, "streamsvc_a", "a1", "Song", credit("Nova", "n"), credit("Kask", "k"))
    world.recording(1, "streamsvc_b", "b1", "Song", artist_credit="Nova & Kask feat. Moor")
    world.release("streamsvc_b", "r", "Album", credit("Nova & Kask"), tracks=("b1",))
    build_artists(world.write())
    found = ids(world)
    credits_ = world.read("source_credit").filter(pl.col("platform") == "streamsvc_b").sort("position")
    assert credits_["name"].to_list() == ["Nova", "Kask", "Moor"]
    assert credits_["role"].to_list() == ["primary", "primary", "featured"]
    assert credits_["artist_id"].to_list()[:2] == [found["streamsvc_a:n"], found["streamsvc_a:k"]]
    assert found["streamsvc_b:name:novaandkask"] == found["streamsvc_a:n"]


def test_various_artists_are_dropped_beside_a_known_artist(world: World) -> None:
    world.recording(1, "streamsvc_a", "a1", "Song", credit("Various Artists", "v"))
    world.recording(1, "store_a", "s1", "Song", credit("Nova", "n"))
    world.recording(2, "streamsvc_a", "a2", "Tune", credit("Various Artists", "v"))
    build_artists(world.write())
    credited = {row[2]: row[5] for row in world.rows_of("source_credit")}
    assert credited == {"s1": "Nova", "a2": "Various Artists"}


@pytest.mark.parametrize(
    ("one", "other", "is_short"),
    [
        ("couperin", "francoiscouperin", True),
        ("jsbach", "johannsebastianbach", True),
        ("wamozart", "wolfgangamadeusmozart", True),
        ("mjackson", "janetjackson", False),
        ("wailers", "bobmarleyandthewailers", False),
        ("queen", "queenandadamlambert", False),
        ("king", "bbking", True),
        ("ono", "yokoono", False),
        ("bach", "bach", False),
    ],
)
def test_short_form_is_a_family_name_with_or_without_initials(one: str, other: str, *, is_short: bool) -> None:
    assert is_short_form(one, other) == is_short_form(other, one) == is_short


@pytest.mark.parametrize(("second", "is_one"), [("a", True), ("b", False)])
def test_family_name_is_the_member_who_leads_all_its_recordings(world: World, second: str, *, is_one: bool) -> None:
    names = {"a": "François Couperin", "b": "Louis Couperin"}
    for number, member in enumerate(("a", second), start=1):
        world.recording(number, "catalog_b", f"b{number}", "Piece", credit(names[member], member))
        world.recording(number, "store_a", f"s{number}", "Piece", credit("Couperin", "s"))
    build_artists(world.write())
    assert (ids(world)["store_a:s"] == ids(world)["catalog_b:a"]) == is_one


def test_strongest_ties_win_over_joins_within_a_platform() -> None:
    nodes = pl.DataFrame({"node": [1, 2, 3], "platform": ["catalog_a", "catalog_a", "store_a"]})
    ties = pl.DataFrame({"node_a": [1, 2], "node_b": [3, 3], "strength": [8.0, 1.0]})
    assert dict(separate_platforms(nodes, ties).iter_rows()) == {1: 1, 2: 2, 3: 1}


def test_a_forbidden_pair_is_not_joined_over_a_third() -> None:
    nodes = pl.DataFrame({"node": [1, 2, 3], "platform": ["a", "b", "c"]})
    edges = pl.DataFrame({"node_a": [1, 2, 1], "node_b": [2, 3, 3], "strength": [5.0, 2.0, -1.0]})
    assert dict(separate_platforms(nodes, edges).iter_rows()) == {1: 1, 2: 1, 3: 3}


def test_spellings_of_one_name_differ_from_other_names() -> None:
    pairs = [
        ("novakask", "novaksak", True),
        ("novakask", "kasknova", True),
        ("nova", "nava", False),
        ("novakask2", "novakask3", False),
        ("novakask", "novakaskband", False),
    ]
    found = is_one_spelling(pl.Series([first for first, _, _ in pairs]), pl.Series([second for _, second, _ in pairs]))
    assert found.to_list() == [same for _, _, same in pairs]


def test_artists_are_the_same_in_blocks_of_any_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add("source_artist", "catalog_a", artist_id="c1", name="Nova")
    world.add("source_artist", "catalog_a", artist_id="c2", name="Nova (2)")
    world.add("source_artist", "catalog_b", artist_id="y1", name="Ye", aliases=["Kanye West"])
    world.add("source_artist", "catalog_b", artist_id="l1", name="Loner")
    world.add(
        "source_link", "catalog_b", entity_kind="artist", entity_id="l1", target_kind="artist", target_platform="store_a", target_id="t9"
    )
    for number in range(1, 8):
        world.recording(number, "streamsvc_a", f"a{number}", f"Song {number}", credit("Nova", f"s{number % 2}"), isrcs=["GBAYE0000101"])
        world.recording(number, "catalog_a", f"{number}-1", f"Song {number}", credit(f"Nova{' (2)' * (number % 2)}", f"c{number % 2 + 1}"))
        world.recording(number + 10, "streamsvc_a", f"k{number}", f"Tune {number}", credit("Kanye West", "k1"))
        world.recording(number + 10, "catalog_b", f"y{number}", f"Tune {number}", credit("Ye", "y1"))
        world.recording(number + 20, "store_a", f"t{number}", f"Air {number}", credit(f"Choir {number}", f"t{number}"), credit("Nova"))
    world.recording(30, "store_a", "t9", "Alone", credit("The Lone One", "t9"))
    paths, found = world.write(), []
    for nodes, joined in ((1_000, 1_000), (3, 1_000), (1, 1_000), (1_000, 5), (1, 1)):
        monkeypatch.setattr(artist_evidence, "NODES_PER_BLOCK", nodes)
        monkeypatch.setattr(workbench, "ROWS_PER_JOIN", joined)
        build_artists(paths)
        found.append([world.read(name) for name in ("source_credit", "artist_source", "artist", "artist_alias")])
    known = ids(world)
    assert known["streamsvc_a:s1"] == known["catalog_a:c2"] != known["catalog_a:c1"]
    assert known["catalog_b:y1"] == known["streamsvc_a:k1"]
    assert known["catalog_b:l1"] == known["store_a:t9"]
    for tables in found[1:]:
        assert all(one.equals(other) for one, other in zip(found[0], tables, strict=True))
