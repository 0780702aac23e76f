"""Tests of streamsvc_a as exported playlists: a track on many playlists is one record, and names are split only by their ids."""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SONGS = (
    "track_id",
    "track_name",
    "track_artist",
    "track_popularity",
    "track_album_id",
    "track_album_name",
    "track_album_release_date",
    "playlist_genre",
    "duration_ms",
)
EXPORT = (
    '"Track URI","Track Name","Artist URI(s)","Artist Name(s)","Album URI","Album Name","Album Artist URI(s)","Album Artist Name(s)",'
    '"Album Release Date","Album Image URL","Disc Number","Track Number","Track Duration (ms)","Track Preview URL","Explicit","Popularity",'
    '"ISRC","Added By","Added At"'
)
Tables = dict[str, pl.DataFrame]


def base62(number: int) -> str:
    return f"{number:022d}"


def song(number: int, name: str = "Slack Water", **changes: object) -> dict[str, object]:
    values = (base62(number), name, "Orla Vint", 50, base62(900), "Low Water", "2019-06", "pop", 201_000.0)
    return dict(zip(SONGS, values, strict=True)) | changes


def tsv(*songs: dict[str, object]) -> str:
    return "\n".join("\t".join(map(str, row)) for row in [SONGS, *(one.values() for one in songs)]) + "\n"


def entry(uri: str, name: str, artist_uris: str, artists: str, *, isrc: str = "QZABC2400001", album: str = "Low Water") -> str:
    album_uri = f"spotify:album:{base62(900)}"
    cells = (
        uri,
        name,
        artist_uris,
        artists,
        album_uri,
        album,
        f"spotify:artist:{base62(1)}",
        "Orla Vint",
        "2019-06-01",
        "",
        "1",
        "2",
        "201000",
    )
    return ",".join(f'"{cell}"' for cell in (*cells, "", "true", "40", isrc, "", "2024-01-01T00:00:00Z"))


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., Tables]:
    def run(**files: str | bytes) -> Tables:
        dump = tmp_path / "dump"
        dump.mkdir(exist_ok=True)
        for name, content in files.items():
            (dump / name.replace("__", ".")).write_bytes(content if isinstance(content, bytes) else content.encode())
        folder = tmp_path / "staging" / "streamsvc_a"
        stage_dump("streamsvc_a", dump, folder)
        return {name: read_table(TABLES[name], folder / name) for name in TABLES if (folder / name).is_dir()}

    return run


def rejects(tables: Tables) -> list[tuple[object, ...]]:
    return tables["reject"].sort("place").select("entity", "severity", "reason", "source_file", "place", "record_id").rows()


def test_a_track_on_several_playlists_is_one_record(stage: Callable[..., Tables]) -> None:
    songs = [song(1), song(2, '7" Mix', playlist_genre="edm"), song(1, playlist_genre="rap"), song(3, track_artist="Vint, Orla & Co")]
    tables = stage(songs__tsv__gz=gzip.compress(tsv(*songs).encode()), more__tsv=tsv(song(3), song(4)))
    recordings = tables["source_recording"]
    assert recordings.select("external_id", "title", "artist_credit", "duration_ms", "popularity").rows() == [
        (base62(3), "Slack Water", "Orla Vint", 201_000, 0.5),
        (base62(4), "Slack Water", "Orla Vint", 201_000, 0.5),
        (base62(1), "Slack Water", "Orla Vint", 201_000, 0.5),
        (base62(2), '7" Mix', "Orla Vint", 201_000, 0.5),
    ]
    assert recordings["artists"].list.len().to_list() == [1, 1, 1, 1]
    assert tables["source_release"].select("release_id", "title", "release_date", "release_date_precision").rows() == [
        (base62(900), "Low Water", "2019-06-01", "month")
    ]
    assert tables["source_release_track"].height == 4
    assert tables["source_genre"].height == 0
    assert tables["intake"].select("entity", "rows_read", "rows_staged", "rows_rejected").rows() == [("source_recording", 4, 4, 0)]


def test_rows_that_are_shifted_cut_or_without_id_are_rejected_with_their_place(stage: Callable[..., Tables]) -> None:
    shifted = song(1, "Waiting", track_artist=" 2017 Remaster", track_popularity="Orla Vint")
    tables = stage(
        songs__tsv=tsv(shifted, song(1), song(2, track_album_release_date=" Unmixed)"), song(3, ""), {**song(4), "track_id": ""})
        + "cut\toff\n"
        + tsv(song(5, duration_ms=-1), song(6, track_album_release_date="0000")).split("\n", 1)[1]
    )
    assert rejects(tables) == [
        ("source_recording", "row", "broken_record", "songs.tsv", "record 1", base62(1)),
        ("source_recording", "row", "broken_record", "songs.tsv", "record 3", base62(2)),
        ("source_recording", "row", "missing_title", "songs.tsv", "record 4", base62(3)),
        ("source_recording", "row", "missing_id", "songs.tsv", "record 5", None),
        ("source_recording", "row", "wrong_column_count", "songs.tsv", "record 6", None),
        ("source_recording", "field", "invalid_duration", "songs.tsv", "record 7", base62(5)),
    ]
    assert tables["source_recording"]["external_id"].to_list() == [base62(1), base62(5), base62(6)]


def test_artists_are_split_only_where_as_many_ids_say_so(stage: Callable[..., Tables]) -> None:
    one, two = (f"spotify:artist:{base62(number)}" for number in (1, 2))
    rows = [
        entry(f"spotify:track:{base62(1)}", "Both", f"{one},{two}", "Orla Vint, Kelp Radios"),
        entry(f"spotify:track:{base62(2)}", "Comma", two, "Kelp, The Radio"),
        entry(f"spotify:track:{base62(3)}", "Unclear", f"{one},{two}", "Orla Vint, Kelp, The Radio", isrc="none"),
        entry("spotify:local:Orla+Vint::Demo:120", "Demo", "", "Orla Vint"),
    ]
    tables = stage(playlist__csv="\ufeff" + "\r\n".join([EXPORT, *rows]))
    assert [[tuple(one.values()) for one in artists] for artists in tables["source_recording"]["artists"].to_list()] == [
        [(base62(1), "Orla Vint", "primary"), (base62(2), "Kelp Radios", "primary")],
        [(base62(2), "Kelp, The Radio", "primary")],
        [(None, "Orla Vint, Kelp, The Radio", "primary")],
    ]
    assert tables["source_recording"].select("isrcs", "is_explicit", "release_id").rows() == [
        (["QZABC2400001"], True, base62(900)),
        (["QZABC2400001"], True, base62(900)),
        ([], True, base62(900)),
    ]
    assert tables["source_artist"].select("artist_id", "name").rows() == [(base62(1), "Orla Vint"), (base62(2), "Kelp Radios")]
    assert tables["source_release_track"].select("disc_number", "track_number").unique().rows() == [(1, 2)]
    assert rejects(tables) == [
        ("source_recording", "field", "invalid_isrc", "playlist.csv", "record 3", base62(3)),
        ("source_recording", "row", "local_file", "playlist.csv", "record 4", "spotify:local:Orla+Vint::Demo:120"),
    ]


def test_quoted_line_ends_and_doubled_quotes_belong_to_their_cell(stage: Callable[..., Tables]) -> None:
    rows = [
        entry(f"spotify:track:{base62(1)}", 'Say ""Slack""\nWater', "", "Orla Vint"),
        entry(f"spotify:track:{base62(2)}", "Next", "", "Orla Vint"),
    ]
    tables = stage(playlist__csv="\n".join([EXPORT, *rows]))
    assert tables["source_recording"]["title"].to_list() == ['Say "Slack" Water', "Next"]


@pytest.mark.parametrize("ends", ["\r\n \n", "\n \r\n", "\r \r"], ids=["CR LF first", "LF first", "CR alone"])
def test_line_ends_of_two_kinds_in_one_file_lose_no_row(stage: Callable[..., Tables], ends: str) -> None:
    first, other = ends.split(" ")
    rows = [entry(f"spotify:track:{base62(number)}", "Say\r\nSlack", "", "Orla Vint") for number in range(6)]
    tables = stage(playlist__csv=first.join([EXPORT, *rows[:3], ""]) + other.join(rows[3:]))
    assert tables["source_recording"].select("external_id", "title").rows() == [(base62(number), "Say Slack") for number in range(6)]
    assert rejects(tables) == []


def test_playlists_give_way_to_answers_and_are_named_as_unread(stage: Callable[..., Tables]) -> None:
    answer = f'{{"id": "{base62(1)}", "name": "Song", "type": "track", "duration_ms": 1000, "artists": []}}'
    tables = stage(track__json=answer, songs__tsv=tsv(song(2)))
    assert tables["source_recording"]["external_id"].to_list() == [base62(1)]
    assert rejects(tables) == [("source_recording", "row", "unread_layout", "songs.tsv", "whole file", None)]


@pytest.mark.parametrize("heading", ["", "track_name", "Track_Name", "more, or less", 'the "best" of', "it's {1}", "two\nlines", " mood "])
def test_headings_that_are_empty_or_repeated_or_odd_cost_no_column(stage: Callable[..., Tables], heading: str) -> None:
    one = song(1, "Café, 7 a.m.")
    rows: list[list[object]] = [[*SONGS, heading, heading], [*one.values(), "x", "y"]]
    quoted = ['"' + str(cell).replace('"', '""') + '"' for row in rows for cell in row]
    width = len(rows[0])
    tables = stage(PLAYLIST__CSV="\n".join(",".join(quoted[start : start + width]) for start in (0, width)))
    assert tables["source_recording"].select("external_id", "title").rows() == [(base62(1), "Café, 7 a.m.")]
    assert rejects(tables) == []


def test_file_that_was_unpacked_on_the_way_is_read_under_the_name_of_a_packed_one(stage: Callable[..., Tables]) -> None:
    assert stage(songs__tsv__gz=tsv(song(1)))["source_recording"]["external_id"].to_list() == [base62(1)]


def test_suffixes_in_capitals_say_how_cells_are_separated(stage: Callable[..., Tables]) -> None:
    assert stage(SONGS__TSV=tsv(song(1)))["source_recording"]["external_id"].to_list() == [base62(1)]


def test_a_heading_that_is_too_long_is_refused_whatever_limit_the_process_has(stage: Callable[..., Tables]) -> None:
    before = csv.field_size_limit(1 << 24)
    try:
        with pytest.raises(DumpError, match=r"songs\.tsv: the heading cannot be read .*; fetch it again"):
            stage(songs__tsv="x" * 200_000)
    finally:
        csv.field_size_limit(before)


def test_a_file_without_ids_and_a_cut_one_are_refused(stage: Callable[..., Tables], tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"songs\.tsv: no column track_id among track_name, track_artist"):
        stage(songs__tsv="track_name\ttrack_artist\nSong\tOrla Vint\n")
    with pytest.raises(DumpError, match=r"songs\.tsv: the heading cannot be read .*; fetch it again"):
        stage(songs__tsv="x" * 200_000)
    with pytest.raises(DumpError, match=r"has a usable row \(songs\.tsv, record 1: wrong_column_count\)"):
        stage(songs__tsv="\t".join(SONGS) + "\nSong\tOrla Vint\n")
    with pytest.raises(DumpError, match=r"no track object in a\.json \(a\.json, line 1: invalid_utf8\)"):
        stage(a__json='{"id": "1"}\n'.encode("utf-16"))
    (tmp_path / "dump" / "a.json").unlink()
    packed = gzip.compress(tsv(*(song(number) for number in range(1, 200))).encode())
    with pytest.raises(DumpError, match=r"songs\.tsv\.gz: .*cut off"):
        stage(songs__tsv=tsv(song(1)), songs__tsv__gz=packed[:-20])
