"""Tests of the displayed name of an artist, and of the table of its other names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from pipeline.build.artist_names import VOTE, choose_names
from pipeline.build.artists import build_artists
from pipeline.build.priorities import ARTIST_NAME

from .conftest import credit

if TYPE_CHECKING:
    from .conftest import World

Form = tuple[str, int] | tuple[str, int, int] | tuple[str, int, int, bool]


def forms(*names: Form, artist: int = 1) -> pl.DataFrame:
    """Build forms of an artist: name, votes, rank in the chain, whether an edited catalog lists it."""
    rows = [(artist, name, votes, *rest, *(9, False)[len(rest) :]) for name, votes, *rest in names]
    return pl.DataFrame(rows, schema=["artist_id", "name", "votes", "rank", "is_edited"], orient="row")


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([("Beyoncé", 2000), ("Beyonce", 1000)], "Beyoncé"),
        # Spellings of one key vote together against another name.
        ([("The Chemical Brothers", 1000), ("Chemical Brothers", 900), ("Chem Bros", 1500)], "The Chemical Brothers"),
        ([("Ye", 1000, 0), ("Kanye West", 3000, 4)], "Kanye West"),
        # Equal votes: the chain decides, and then the alphabet.
        ([("P. Diddy", 1000, 3), ("Puff Daddy", 1000, 0)], "Puff Daddy"),
        ([("Kask", 1000), ("Moor", 1000)], "Kask"),
        # Capitals throughout, small letters throughout.
        ([("DAFT PUNK", 3000), ("Daft Punk", 1000)], "Daft Punk"),
        ([("SIGUR RÓS", 2000), ("Sigur Rós", 400), ("sigur rós", 100)], "Sigur Rós"),
        ([("daft punk", 1000, 0), ("Daft Punk", 1000, 5)], "Daft Punk"),
        ([("deadmau5", 3000), ("Deadmau5", 1000)], "deadmau5"),
        ([("ABBA", 3000), ("Abba", 500)], "ABBA"),
        ([("КИНО", 2000), ("Кино", 2000)], "Кино"),
        ([("SCOOTER", 2000), ("Scooter", 20)], "SCOOTER"),
        # Family names and initials.
        ([("Couperin", 533), ("François Couperin", 466)], "François Couperin"),
        ([("Beethoven", 4000), ("Ludwig van Beethoven", 1000, 0, True)], "Ludwig van Beethoven"),
        ([("J. S. Bach", 2000), ("Bach", 2500), ("Johann Sebastian Bach", 1000)], "Johann Sebastian Bach"),
        ([("J.S. Bach", 2000), ("Johann Sebastian Bach", 1000)], "Johann Sebastian Bach"),
        ([("Чайковский", 2000), ("Пётр Ильич Чайковский", 1500)], "Пётр Ильич Чайковский"),
        ([("Morrissey", 4000), ("Steven Patrick Morrissey", 60)], "Morrissey"),
        ([("Prince", 2000), ("Prince Rogers Nelson", 1500)], "Prince"),
        ([("Sting", 2000), ("Sting and The Police", 1500)], "Sting"),
        ([("Nelson", 2000), ("Prince and Nelson", 1500)], "Nelson"),
        # Sort names.
        ([("Dylan, Bob", 3000), ("Bob Dylan", 1000)], "Bob Dylan"),
        ([("Earth, Wind & Fire", 2000), ("Earth Wind And Fire", 1000)], "Earth, Wind & Fire"),
        ([("Crosby, Stills & Nash", 1000), ("CROSBY, STILLS & NASH", 2000)], "Crosby, Stills & Nash"),
        # Remarks in brackets, where the name stands without them, too.
        ([("John Smith (2)", 3000), ("John Smith", 100)], "John Smith"),
        ([("Bush (US)", 3000), ("Bush", 1000)], "Bush"),
        ([("Nirvana [UK]", 1000, 0), ("Nirvana", 1000, 5)], "Nirvana"),
        ([("Sunn O)))", 1000), ("Sunn", 500)], "Sunn O)))"),
        ([("Various", 6000), ("Various Artists", 0)], "Various Artists"),
    ],
)
def test_shown_name_is_the_best_supported_full_form(names: list[Form], shown: str) -> None:
    assert choose_names(forms(*names))["name"].to_list() == [shown]


@pytest.mark.parametrize("seed", range(4))
def test_shown_names_depend_neither_on_ids_nor_on_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = ("Ada", "A.", "Lund", "Marlin", "LUND", "ada", "(2)", "Lund,", "Ada,")
    artists = []
    for _ in range(30):
        names = sorted({" ".join(rng.choice(parts, size=rng.integers(1, 4))) for _ in range(rng.integers(2, 9))})
        artists.append([(name, int(rng.choice((0, 250, VOTE))), int(rng.integers(7)), bool(rng.random() < 0.2)) for name in names])
    shown = choose_names(pl.concat([forms(*names, artist=number) for number, names in enumerate(artists)]))
    numbers = rng.permutation(1000)[: len(artists)].tolist()
    frame = pl.concat([forms(*names, artist=number) for number, names in zip(numbers, artists, strict=True)])
    again = dict(choose_names(frame.sample(fraction=1, shuffle=True, seed=seed)).iter_rows())
    assert [again[number] for number in numbers] == shown.sort("artist_id")["name"].to_list()


def test_names_of_many_forms_are_compared_in_bounds() -> None:
    many = [(f"Name {number}", 1) for number in range(500)]
    assert choose_names(forms(("Mozart", 900), *many))["name"].to_list() == ["Mozart"]


def test_shown_name_is_the_one_that_most_platforms_show(world: World) -> None:
    for number, (platform, name) in enumerate(zip(ARTIST_NAME, ("Moth Parade", *["Ostara Vale"] * 5), strict=True)):
        world.add("source_artist", platform, artist_id=platform, name=name, aliases=["Moth Parade"] if number == 1 else [])
        world.recording(1, platform, f"{platform}-1", "Song", credit(name, platform))
        world.recording(2, platform, f"{platform}-2", "Tune", credit(name, platform))
    build_artists(world.write())
    assert world.read("artist")["name"].to_list() == ["Ostara Vale", "Various Artists"]


def test_article_after_a_name_is_displayed_before_it(world: World) -> None:
    world.recording(1, "catalog_a", "1-1", "Song", credit("Beatles, The", "c1"))
    build_artists(world.write())
    assert "The Beatles" in world.read("artist")["name"].to_list()
    assert ("Beatles, The", "credit", "catalog_a") in world.rows_of("artist_alias", "alias", "kind", "platform")


def test_a_legal_name_is_published_and_neither_shown_nor_joins_artists(world: World) -> None:
    for number, (name, legal) in enumerate([("Aphex Twin", "Richard James"), ("AFX", "Richard James"), ("Sade", " Sade ")], start=1):
        world.add("source_artist", "catalog_a", artist_id=str(number), name=name)
        world.add("source_legal_name", "catalog_a", artist_id=str(number), name=legal)
        world.recording(number, "catalog_a", f"{number}-1", "Song", credit(name, str(number)))
    world.recording(4, "streamsvc_a", "a1", "Tune", credit("Richard James", "a"))
    build_artists(world.write())
    assert {*world.read("artist")["name"]} == {"Aphex Twin", "AFX", "Sade", "Richard James", "Various Artists"}
    names = dict(world.rows_of("artist", "artist_id", "name"))
    assert {(names[number], *other) for number, *other in world.rows_of("artist_alias")} == {
        ("Aphex Twin", "Richard James", "legal_name", "catalog_a"),
        ("AFX", "Richard James", "legal_name", "catalog_a"),
    }


def test_other_names_are_published_with_kind_and_platform(world: World) -> None:
    world.add("source_artist", "catalog_b", artist_id="b", name="Kanye West", sort_name="West, Kanye", aliases=["Ye", "Yeezy"])
    world.add("source_artist", "catalog_a", artist_id="c", name="Kanye West (2)", aliases=["K. West"])
    world.recording(1, "catalog_b", "b1", "Song", credit("Ye", "b"))
    world.recording(1, "catalog_a", "1-1", "Song", credit("Kanye West", "c"))
    world.recording(1, "streamsvc_a", "a1", "Song", credit("KANYE WEST", "a"))
    world.release("store_a", "r", "Album", credit("kanye west"))
    build_artists(world.write())
    assert [name for name in world.read("artist")["name"] if name != "Various Artists"] == ["Kanye West"]
    assert world.rows_of("artist_alias", "alias", "kind", "platform") == [
        ("K. West", "alias", "catalog_a"),
        ("KANYE WEST", "credit", "streamsvc_a"),
        ("West, Kanye", "sort_name", "catalog_b"),
        ("Ye", "alias", "catalog_b"),
        ("Ye", "credit", "catalog_b"),
        ("Yeezy", "alias", "catalog_b"),
        ("kanye west", "credit", "store_a"),
    ]
