"""Tests of other names of artists and other titles: they find a recording, and rank between the shown name and a guest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from catalog_store.cursors import CursorCodec
from catalog_store.name_keys import build_title_keys
from catalog_store.queries.track_search import Hit, Request, search
from catalog_store.search import other_names, search_build
from catalog_store.search.search_build import build_search
from catalog_store.search.search_index import SearchIndex
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from tests.catalog_store.earlier_snapshots import files_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Credit = tuple[str, bool]


class Songs:
    """Recordings with artists, other names and other titles, and an index of them. A later recording is more popular."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {
            name: [] for name in ("recording", "recording_artist", "artist_alias", "recording_alias")
        }
        self.artists: dict[str, int] = {}

    def add(self, title: str, *artists: str, guests: Sequence[str] = (), titles: Sequence[str] = (), kind: str = "recording") -> int:
        number = len(self.rows["recording"]) + 1
        variant = build_title_keys(title).variant
        self.rows["recording"].append({"recording_id": number, "title": title, "variant": variant, "popularity": number / 100})
        for place, name in enumerate((*artists, *guests)):
            artist = self.artists.setdefault(name, len(self.artists) + 1)
            credited = {"recording_id": number, "position": place, "artist_id": artist, "name": name, "is_primary": name in artists}
            self.rows["recording_artist"].append({**credited, "is_remixer": False})
        for other in titles:
            self.rows["recording_alias"].append({"recording_id": number, "alias": other, "kind": kind, "platform": "catalog_b"})
        return number

    def call(self, artist: str, *others: str, kind: str = "alias") -> None:
        for other in others:
            row = {"artist_id": self.artists[artist], "alias": other, "kind": kind, "platform": "catalog_b"}
            self.rows["artist_alias"].append(row)

    def index(self, folder: Path, rows_per_part: int = 1_000) -> SearchIndex:
        for name, rows in self.rows.items():
            table = TABLES[name]
            frame = table.conform(pl.DataFrame(rows, schema=table.polars_schema, orient="row"))
            write_table(table, folder / name, frame.iter_slices(rows_per_part))
        build_search({name: folder / name for name in self.rows}, folder / "search")
        return SearchIndex(folder / "search")


def ask(index: SearchIndex, artist: str, title: str) -> list[Hit]:
    return search(index, CursorCodec(), Request(artist, title), deadline=5).hits


@pytest.mark.parametrize("kind", ["alias", "sort_name", "name", "legal_name"])
def test_a_shown_name_ranks_before_another_name_and_that_before_a_guest(tmp_path: Path, kind: str) -> None:
    songs = Songs()
    shown = songs.add("Runaway", "Kanye West")
    other = songs.add("Runaway", "Ye")
    one_of_two = songs.add("Runaway", "Yeezus Maker", "Jay-Z")
    guest = songs.add("Runaway", "Pusha T", guests=["Kanye West"])
    songs.call("Ye", "Kanye West", kind=kind)
    songs.call("Yeezus Maker", "Kanye West", kind=kind)
    found = ask(songs.index(tmp_path), "Kanye West", "Runaway")
    assert [hit.id for hit in found] == [shown, other, one_of_two, guest]
    assert [hit.reasons[0] for hit in found] == ["artist_equal", "artist_alias", "artist_alias", "featured_artist"]
    assert {hit.match_class for hit in found[1:]} == {"strong"}


def test_a_shown_title_ranks_before_another_title(tmp_path: Path) -> None:
    songs = Songs()
    shown = songs.add("Fireworks", "Daoko")
    other = songs.add("Uchiage Hanabi", "Daoko", titles=["Fireworks"])
    songs.add("Uchiage Kaika", "Daoko", titles=["Flowers"])
    found = ask(songs.index(tmp_path), "Daoko", "Fireworks")
    assert [(hit.id, hit.reasons[1]) for hit in found] == [(shown, "title_equal"), (other, "title_alias")]


@pytest.mark.parametrize(
    ("artist", "title"),
    [
        ("Kino", "Eighth Grader"),
        ("kino", "eigth grader"),
        ("Kino", "Eighth Grader (Live)"),
        ("Eighth Grader", "Kino"),
        ("Some Channel", "Kino - Eighth Grader (Official Video)"),
        ("kino", "eighth"),
        ("Kino", "八年生の歌"),
        ("Kino", "Achtklaesslerin"),
        ("Kino", "Achtklässlerin"),
    ],
)
def test_translated_titles_find_a_recording_in_every_reading(tmp_path: Path, artist: str, title: str) -> None:
    songs = Songs()
    wanted = songs.add("Восьмиклассница", "Kino", titles=["Eighth Grader", "八年生の歌", "Achtklässlerin"])
    songs.add("Группа крови", "Kino", titles=["Blood Type"])
    songs.add("Eighth Wonder", "Somebody Else")
    found = ask(songs.index(tmp_path), artist, title)
    assert found, "an answer"
    assert found[0].id == wanted


def test_titles_of_the_recording_count_before_those_of_its_work_and_three_at_most(tmp_path: Path) -> None:
    songs = Songs()
    number = songs.add("Song", "Ada", titles=["Werk", "Lied der Nacht", "Canto", "Sang"], kind="work")
    songs.rows["recording_alias"].append({"recording_id": number, "alias": "Uta", "kind": "recording", "platform": "catalog_b"})
    songs.rows["recording_alias"].append({"recording_id": number, "alias": "SONG!", "kind": "recording", "platform": "catalog_b"})
    index = songs.index(tmp_path)
    (title,) = index.titles.of([(0 << 32) | 0xFFFF_FFFF])
    assert title.others == ("uta", "lied der nacht", "canto")


def test_an_artist_credited_under_another_name_is_found_by_both(tmp_path: Path) -> None:
    songs = Songs()
    number = songs.add("Cigarettes", "Cigarettes After Sex")
    songs.rows["recording_artist"][0]["credited_as"] = "CAS Trio"
    index = songs.index(tmp_path)
    assert [hit.reasons[0] for hit in ask(index, "CAS Trio", "Cigarettes")] == ["artist_equal"]
    assert [(hit.id, hit.reasons[0]) for hit in ask(index, "Cigarettes After Sex", "Cigarettes")] == [(number, "artist_alias")]


def test_other_names_do_not_depend_on_blocks_of_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    songs = Songs()
    songs.add("Runaway", "Ye")
    songs.add("Stronger", "Ye")
    # Only the second recording shows this name of the artist.
    songs.rows["recording_artist"][1]["credited_as"] = "Kanye West"
    songs.call("Ye", "Kanye West", "Yeezy", "Louis Vuitton Don", "Ye Tudda")
    songs.index(tmp_path / "one")
    monkeypatch.setattr(search_build, "DOCUMENTS_PER_BLOCK", 1)
    songs.index(tmp_path / "two")
    assert files_of(tmp_path / "one" / "search") == files_of(tmp_path / "two" / "search")


def test_other_names_do_not_depend_on_parts_and_ranges_of_artists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    songs = Songs()
    songs.add("Runaway", "Ye", "Common")
    songs.add("Stronger", "Ye", guests=["Daft Punk"])
    songs.add("Kuchizuke", "山田太郎")
    # One part has the name that the artist's aliases must differ from, another one its other names.
    songs.rows["recording_artist"][2]["credited_as"] = "Kanye West"
    songs.call("Ye", "Kanye West", "Yeezy")
    songs.call("Daft Punk", "Thomas and Guy")
    songs.call("山田太郎", "Taro Yamada", "Tarou")
    index = songs.index(tmp_path / "one")
    assert [hit.reasons[0] for hit in ask(index, "Yeezy", "Runaway")] == ["artist_alias"]
    monkeypatch.setattr(other_names, "ARTISTS_PER_RANGE", 1)
    songs.index(tmp_path / "two", rows_per_part=1)
    assert files_of(tmp_path / "one" / "search") == files_of(tmp_path / "two" / "search")
