"""Two releases of one title whose tracks agree place by place say which recording a damaged track is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage import link, release_alignment
from tests.pipeline.linkage.worlds import Records, partition

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def test_releases_are_aligned_a_few_titles_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_alignment, "TRACKS_AT_A_TIME", 2)
    placed = [pl.DataFrame({"title": titles}, schema={"title": pl.UInt64}) for titles in ([5, 3, 5, 9], [], [3, 3, 5])]
    pieces = [rows["title"].to_list() for rows in release_alignment._cut_by_title(placed)]
    assert sorted(title for piece in pieces for title in piece) == [3, 3, 3, 5, 5, 5, 9]
    assert sum(len(set(piece)) for piece in pieces) == len({3, 5, 9}), "a title is in two pieces"
    assert max(map(len, pieces)) < sum(rows.height for rows in placed)
    album = Album()
    album.add("b", 2, "Track 02", 234)
    assert album.is_one(2)


def test_only_tracks_of_titles_with_an_atom_without_a_code_are_placed() -> None:
    """Releases 1 and 2 share a title, and so do 3 and 4; record 40 alone has an atom (4) without a code."""
    titles = pl.DataFrame({"release": [1, 2, 3, 4, 5], "title": [7, 7, 8, 8, 9]}, schema={"release": pl.UInt64, "title": pl.UInt64})
    members = pl.DataFrame({"record": [10, 20, 30, 40, 50], "atom_id": [1, 2, 3, 4, 5]}, schema={"record": pl.UInt64, "atom_id": pl.Int64})
    schema = {"release": pl.UInt64, "record": pl.UInt64, "spot": pl.UInt16}
    tracks = pl.DataFrame({"release": [1, 2, 3, 4, 5], "record": [10, 20, 30, 40, 50], "spot": [1] * 5}, schema=schema)

    class Atoms:
        def read_pieces(self, _name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
            yield from members.select(columns).iter_slices(2)

        def read_atom_rows(self, _name: str, atom_ids: pl.Series, _columns: list[str]) -> pl.DataFrame:
            raise AssertionError(atom_ids)

    components = pl.DataFrame({"atom_id": [2, 4], "cluster_id": [2, 2]})
    placed = release_alignment._place_atoms(Atoms(), titles, components, np.array([1, 2, 3, 5]), lambda: tracks.iter_slices(2))
    rows = pl.concat(placed).select("title", "release", "spot", "atom_id", "root")
    assert sorted(rows.iter_rows()) == [(8, 3, 1, 3, 3), (8, 4, 1, 4, 2)]


def test_track_that_is_listed_twice_in_one_place_is_one_track() -> None:
    """Two records of one atom may have one place."""

    class Atoms:
        def read_pieces(self, name: str, _columns: list[str]) -> Iterator[pl.DataFrame]:
            raise AssertionError(name)

        def read_atom_rows(self, _name: str, atom_ids: pl.Series, _columns: list[str]) -> pl.DataFrame:
            return pl.DataFrame({"atom_id": atom_ids, "duration_ms": pl.Series([200_000] * len(atom_ids), dtype=pl.Int32)})

    places, agreeing = [1, 2, 3], [10, 20]
    one = {"release": 1, "spot": places, "atom_id": [*agreeing, 30], "root": [*agreeing, 30]}
    other = {"release": 2, "spot": places, "atom_id": [*agreeing, 40], "root": [*agreeing, 40]}
    placed = pl.concat([pl.DataFrame(rows) for rows in (one, other)]).with_columns(title=pl.lit(7))
    once, twice = (
        release_alignment._pair_atoms(rows, Atoms(), np.array([10, 20, 30])) for rows in (placed, pl.concat([placed, placed.tail(1)]))
    )
    assert once.select("atom_id", "atom_id_b", "agreeing").rows() == [(30, 40, 2)]
    assert twice.equals(once)
