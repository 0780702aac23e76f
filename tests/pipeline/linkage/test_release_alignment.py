"""Two releases of one title whose tracks agree place by place say which recording a damaged track is."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage import link
from tests.pipeline.linkage.worlds import Records, partition

PLATFORMS = {"a": "streamsvc_a", "b": "catalog_a"}
SONGS = ("First Light", "Second Wind", "Third Degree", "Fourth Wall")


class Album:
    """An album on two platforms: records `a1`, `a2` ... and `b1`, `b2` ... of equal songs, until a test damages one."""

    def __init__(self, songs: tuple[str, ...] = SONGS, titles: tuple[str, str] = ("Sea Change", "Sea Change (Deluxe Edition)")) -> None:
        self.records, self.titles, self.tracks = Records(), titles, list[dict[str, object]]()
        for side in "ab":
            for place, song in enumerate(songs, start=1):
                self.add(side, place, song, 200 + 17 * place)

    def add(self, side: str, place: int, title: str, seconds: float | None, artists: str = "Mira Kask") -> None:
        name = f"{side}{place}"
        self.records.rows = [row for row in self.records.rows if row["external_id"] != name]
        self.tracks = [row for row in self.tracks if row["external_id"] != name]
        self.records.add(name, title, artists, platform=PLATFORMS[side], seconds=seconds, release=f"r{side}")
        place_on = {"release_id": f"r{side}", "external_id": name, "disc_number": 1, "track_number": place}
        self.tracks.append({"platform": PLATFORMS[side], **place_on})

    def is_one(self, place: int) -> bool:
        made = [
            {"platform": PLATFORMS[side], "release_id": f"r{side}", "title": title, "artists": []}
            for side, title in zip("ab", self.titles, strict=True)
        ]
        releases = pl.DataFrame(made).with_columns(is_compilation=pl.lit(value=False), is_official=pl.lit(value=True))
        tables = {
            "releases": TABLES["source_release"].conform(releases),
            "tracks": TABLES["source_release_track"].conform(pl.DataFrame(self.tracks)),
        }
        return frozenset({f"a{place}", f"b{place}"}) in partition(link(self.records.frame(), **tables))


@pytest.mark.parametrize(
    ("title", "seconds"),
    [
        ("Track 02", 234),
        ("Second Wind", 244),
        ("secnd wnd", 235),
        ("02 - Secod Win", 234),
        ("[untitled]", 235),
        ("Second Wind (Live)", 234),  # a platform may omit the word on a live album
    ],
)
def test_damaged_track_is_the_one_in_its_place(title: str, seconds: float | None) -> None:
    album = Album()
    album.add("b", 2, title, seconds)
    assert album.is_one(2)


@pytest.mark.parametrize(
    ("title", "seconds", "artists"),
    [
        ("Track 02", 260, "Mira Kask"),
        ("Another Matter", 234, "Mira Kask"),
        ("Second Wind (Live)", 240, "Mira Kask"),
        ("Second Wind (Instrumental)", None, "Mira Kask"),
        ("Second Wind", 290, "Mira Kask"),
    ],
)
def test_other_track_in_the_place_stays_apart(title: str, seconds: float | None, artists: str) -> None:
    album = Album()
    album.add("b", 2, title, seconds, artists)
    assert not album.is_one(2)


def test_release_of_another_title_says_nothing() -> None:
    album = Album(titles=("Sea Change", "Greatest Moments"))
    album.add("b", 2, "Track 02", 234)
    assert not album.is_one(2)


def test_release_whose_other_tracks_contradict_says_nothing() -> None:
    album = Album()
    for place in (1, 3, 4):
        album.add("b", place, f"Elsewhere {place}", 400 + place)
    album.add("b", 2, "Track 02", 234)
    assert not album.is_one(2)


def test_single_of_one_artist_and_place_says_which_track_it_is() -> None:
    album = Album(songs=("Second Wind",), titles=("Second Wind", "Second Wind - Single"))
    album.add("b", 1, "[untitled]", 217)
    assert album.is_one(1)


def test_movement_without_length_is_the_one_in_its_place() -> None:
    work = "Symphony No. 5 in C Minor"
    movements = tuple(f"{work}: {number}. {tempo}" for number, tempo in (("I", "Allegro"), ("II", "Andante"), ("III", "Scherzo")))
    album = Album(songs=movements)
    album.add("b", 2, "II. Andante", None)
    assert album.is_one(2)
    album.add("b", 2, "I. Allegro", None)
    assert not album.is_one(2)
