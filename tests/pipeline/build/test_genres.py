from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from genre_rules import compile_book, load_book
from genre_rules.load import FOLDER
from pipeline.build import genres as genres_stage
from pipeline.build.genres import build_genres
from pipeline.quality.genre_coverage import read_genre_coverage

from .conftest import credit

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from genre_rules import RuleBook
    from genre_rules.compile import CompiledBook

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
    assert organic["description"].startswith("Deep house with acoustic instruments")
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


def test_umbrella_yields_to_a_dance_main(world: World) -> None:
    world.recording(1, "catalog_a", "7-1", "Song", NOVA)
    world.release("catalog_a", "7", "Album", NOVA, tracks=("7-1",))
    world.add("source_genre", "catalog_a", entity_kind="release", entity_id="7", genre="Electronic", position=0)
    world.add("source_genre", "catalog_a", entity_kind="release", entity_id="7", genre="Deep House", parent="Electronic", position=1)
    assert genres(world) == [(1, "Deep House")]


def said(world: World, **genres_of: str) -> None:
    for platform, genre in genres_of.items():
        world.recording(1, platform, platform, "Song", NOVA)
        world.add("source_genre", platform, entity_kind="recording", entity_id=platform, genre=genre)


def test_a_main_that_two_platforms_share_outvotes_the_first_of_the_chain(world: World) -> None:
    said(world, store_a="Techno", catalog_b="ambient", streamsvc_c="Ambient", streamsvc_b="Jazz")
    assert genres(world, "platform", "platform_count") == [(1, "Ambient", "catalog_b", 2)]


def test_every_main_that_two_platforms_share_has_the_subgenres_of_its_first_platform(world: World) -> None:
    said(world, store_a="Techno", catalog_b="jazz; minimal techno", streamsvc_b="Bebop")
    assert genres(world, "platform", "platform_count") == [(1, "Techno", "store_a", 2), (1, "Jazz", "catalog_b", 2)]


def test_without_agreement_the_first_of_the_chain_decides_and_artists_come_last(world: World) -> None:
    said(world, streamsvc_c="Soul", streamsvc_b="Jazz")
    world.recording(1, "catalog_b", "r", "Song", NOVA)
    world.add("source_genre", "catalog_b", entity_kind="artist", entity_id="n", genre="polka")
    assert genres(world, "platform", "entity_kind") == [(1, "Jazz", "streamsvc_b", "recording")]


def test_genre_with_a_narrower_one_means_the_narrower_one(world: World) -> None:
    world.recording(1, "store_a", "s", "Song", NOVA)
    parent = "Hard Dance / Hardcore / Neo Rave"
    world.add("source_genre", "store_a", entity_kind="recording", entity_id="s", genre=parent, position=0)
    world.add("source_genre", "store_a", entity_kind="recording", entity_id="s", genre="Hardstyle", parent=parent, position=1)
    world.recording(2, "store_a", "t", "Song", NOVA)
    world.add("source_genre", "store_a", entity_kind="recording", entity_id="t", genre=parent, position=0)
    world.add("source_genre", "store_a", entity_kind="recording", entity_id="t", genre="Zork", parent=parent, position=1)
    assert genres(world, "parent") == [(1, "Hardstyle", parent), (2, "Hardcore", parent)]


def test_an_umbrella_of_one_platform_yields_to_a_finer_word_of_another_but_not_to_one_about_the_artist(world: World) -> None:
    said(world, streamsvc_b="Electronic", streamsvc_c="Electronic", store_a="Tech House")
    world.recording(2, "streamsvc_c", "c2", "Song", credit("Other", "o"))
    world.recording(2, "streamsvc_b", "b2", "Song", credit("Other", "o"))
    world.recording(2, "streamsvc_a", "a2", "Song", credit("Other", "o"))
    for platform, entity in (("streamsvc_c", "c2"), ("streamsvc_b", "b2")):
        world.add("source_genre", platform, entity_kind="recording", entity_id=entity, genre="Electronic")
    world.add("source_genre", "streamsvc_a", entity_kind="artist", entity_id="o", genre="house")
    assert genres(world, "platform") == [(1, "Tech House", "store_a"), (2, "Electronic", "streamsvc_b")]


def suggestion(world: World, number: int, kind: str, entity: str, name: str) -> None:
    node = load_book().taxonomy.by_name[name].id
    world.add("source_suggestion", "suggestions", suggestion_id=str(number), entity_kind=kind, entity_id=entity, genre_id=node)


def test_an_approved_suggestion_decides_alone_against_all_platforms(world: World) -> None:
    said(world, store_a="Techno", catalog_b="techno", streamsvc_c="Techno")
    suggestion(world, 81, "recording", "1", "Acid Jazz")
    assert genres(world, "platform", "genre", "rule_id") == [(1, "Acid Jazz", "suggestion", "Acid Jazz", "suggestion-81")]


def test_suggestions_reach_recordings_by_code_and_by_artist_and_the_closer_one_decides(world: World) -> None:
    for number in (1, 2, 3):
        world.recording(number, "streamsvc_b", str(number), "Song", NOVA, isrcs=[f"GBAYE000000{number}"])
    paths = world.write()
    artists = [
        {"recording_id": n, "position": 0, "artist_id": 7, "name": "Nova", "is_primary": n < 3, "is_remixer": False} for n in (1, 2, 3)
    ]
    write_table(TABLES["recording_artist"], paths.table("recording_artist"), pl.DataFrame(artists))
    suggestion(world, 1, "artist", "7", "Jazz")
    suggestion(world, 2, "isrc", "GBAYE0000002", "Techno")
    suggestion(world, 3, "isrc", "GBAYE9999999", "House")
    assert genres(world, "entity_kind") == [(1, "Jazz", "artist"), (2, "Techno", "recording")]


def test_a_suggestion_on_a_retired_id_follows_the_redirect(world: World) -> None:
    world.recording(1, "streamsvc_b", "1", "Song", NOVA)
    paths = world.write()
    redirects = pl.DataFrame([{"kind": "recording", "old_id": 44, "new_id": 1}, {"kind": "artist", "old_id": 45, "new_id": 1}])
    write_table(TABLES["redirect"], paths.table("redirect"), redirects)
    suggestion(world, 1, "recording", "44", "Jazz")
    suggestion(world, 2, "recording", "45", "House")
    assert genres(world) == [(1, "Jazz")]


def test_unclassifiable_strings_are_never_returned_but_weighed(world: World) -> None:
    for number in (1, 2):
        world.recording(number, "catalog_b", f"r{number}", "Song", NOVA)
        world.add("source_genre", "catalog_b", entity_kind="recording", entity_id=f"r{number}", genre="house of pain")
    world.add("source_genre", "catalog_b", entity_kind="recording", entity_id="r2", genre="jazz")
    world.add("source_genre", "catalog_b", entity_kind="recording", entity_id="r2", genre="seen live")
    assert genres(world) == [(2, "Jazz")]
    assert world.rows_of("unclassified_genre_string") == [("catalog_b", "", "house of pain", 2, 1)]


def test_coverage_counts_strings_understood_strings_and_decided_mains(world: World) -> None:
    said(world, store_a="Techno", catalog_b="ambient", streamsvc_c="Ambient")
    world.recording(2, "store_a", "s2", "Song", NOVA)
    world.add("source_genre", "store_a", entity_kind="recording", entity_id="s2", genre="qwertzuiop")
    world.recording(3, "store_a", "s3", "Song", NOVA)
    build_genres(world.write())
    rows = {(platform, main): counts for platform, main, *counts in world.rows_of("genre_coverage")}
    assert rows["store_a", ""] == [3, 2, 1, 0]
    assert rows["store_a", "Techno"] == [3, 2, 1, 0]
    assert rows["streamsvc_c", "Electronic"] == [1, 1, 1, 1]
    assert rows["", ""] == [3, 2, 1, 1]
    coverage = read_genre_coverage(world.paths)
    assert (coverage.recordings, coverage.classified, coverage.unclassified_count) == (3, 1, 1)
    assert coverage.unclassified == (("store_a", "", "qwertzuiop", 1, 1),)
    assert coverage.said["catalog_b", "Electronic"] == 1
    assert [main.key for main in coverage.mains] == ["Electronic", "Techno"]


def test_parent_of_the_source_decides_the_meaning_of_a_string(world: World) -> None:
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


def test_rules_are_compiled_for_new_strings_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[RuleBook] = []

    def compile_and_count(book: RuleBook) -> CompiledBook:
        compiled.append(book)
        return compile_book(book)

    monkeypatch.setattr(genres_stage, "compile_book", compile_and_count)
    said(world, store_a="Techno", catalog_b="Wobbly Something")
    tables = ("recording_genre", "vocabulary_genre", "unclassified_genre_string")
    seen = []
    for _ in range(2):
        genres(world)
        seen.append([world.read(name) for name in tables])
    assert len(compiled) == 1
    assert all(one.equals(other) for one, other in zip(*seen, strict=True))
    said(world, streamsvc_c="Deep House")
    genres(world)
    assert len(compiled) == 2


def test_other_rules_read_all_strings_again(world: World, tmp_path: Path) -> None:
    said(world, store_a="Techno", catalog_b="Wobbly Something")
    build_genres(world.write())
    rules = tmp_path / "rules"
    shutil.copytree(FOLDER, rules)
    book = (rules / "drop.yaml").read_text()
    (rules / "drop.yaml").write_text(book.replace("strings:\n", "strings:\n  - [techno]\n", 1))
    build_genres(replace(world.paths, rules=rules))
    assert world.read("recording_genre").height == 0
