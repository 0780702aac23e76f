"""streamsvc_c: flat tracks and tracks with a performers' line give every field, and dirt in them is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.dumps.platforms.streamsvc_c.credit_lines import read_genre_paths, read_performers
from tests.pipeline.dumps.platforms.streamsvc_c_dumps import Row, Tables, rejects, row

if TYPE_CHECKING:
    from collections.abc import Callable


def flat_track(number: int, **changes: object) -> Row:
    record = {
        "id": number,
        "title": "Song (Remastered)",
        "title_short": "Song",
        "title_version": "(Remastered)",
        "isrc": "GBDUW0000059",
        "duration": 224,
        "track_position": 4,
        "disk_number": 1,
        "rank": 812_560,
        "release_date": "2005-01-24",
        "explicit_lyrics": False,
        "explicit_content_lyrics": 0,
        "artist": {"id": 27, "name": "Daft Punk"},
        "album": {"id": 302127, "title": "Discovery", "release_date": "2001-03-07"},
        "type": "track",
    }
    return record | changes


def test_a_flat_track_gives_every_field(stage_files: Callable[..., Tables]) -> None:
    contributors = [
        {"id": 27, "name": "Daft Punk", "role": "Main"},
        {"id": 5, "name": "Pharrell", "role": "Featured"},
        {"id": 6, "name": "DJ X", "role": "Remixer"},
        {"id": 7, "name": "Y", "role": "Other"},
    ]
    tables = stage_files(tracks__jsonl=[flat_track(1, contributors=contributors), flat_track(2)])
    first, second = tables["source_recording"].iter_rows(named=True)
    assert (first["title"], first["version"], first["duration_ms"], first["isrcs"]) == ("Song", "Remastered", 224_000, ["GBDUW0000059"])
    assert (first["release_id"], first["release_date"], first["popularity"]) == ("302127", "2005-01-24", 0.81256)
    assert [(artist["artist_id"], artist["role"]) for artist in first["artists"]] == [
        ("27", "primary"),
        ("5", "featured"),
        ("6", "remixer"),
        ("7", "primary"),
    ]
    assert second["artists"] == [{"artist_id": "27", "name": "Daft Punk", "role": "primary"}]
    assert tables["source_release"].select("release_id", "title", "release_date").rows() == [("302127", "Discovery", "2001-03-07")]
    assert tables["source_release_track"].drop("platform").rows() == [("302127", "1", 1, 4), ("302127", "2", 1, 4)]


def test_brackets_around_a_version_go(stage_files: Callable[..., Tables]) -> None:
    written: list[tuple[str | None, str]] = [
        ("(Remastered)", "Song"),
        ("(feat. X (live))", "Song"),
        ("(feat. X) (Remix)", "Song"),
        ("[Live]", "Song"),
        ("Live", "Song"),
        ("", "Song (Live)"),
        (None, "Song (Live)"),
    ]
    tracks = [flat_track(n, title=title, title_short="Song", title_version=version) for n, (version, title) in enumerate(written)]
    tables = stage_files(tracks__jsonl=tracks)
    assert tables["source_recording"].select("title", "version").rows() == [
        ("Song", "Remastered"),
        ("Song", "feat. X (live)"),
        ("Song", "(feat. X) (Remix)"),
        ("Song", "Live"),
        ("Song", "Live"),
        ("Song (Live)", None),
        ("Song (Live)", None),
    ]


def test_explicit_is_null_when_the_platform_does_not_know(stage_files: Callable[..., Tables]) -> None:
    expected = {
        (True, 0): True,
        (False, 1): True,
        (False, 0): False,
        (False, 3): False,
        (False, 4): True,
        (False, 2): None,
        (False, 5): None,
        (False, 6): None,
        (False, 7): None,
        (False, None): False,
        (None, None): None,
    }
    tracks = [flat_track(n, explicit_lyrics=lyrics, explicit_content_lyrics=content) for n, (lyrics, content) in enumerate(expected)]
    assert stage_files(tracks__jsonl=tracks)["source_recording"]["is_explicit"].to_list() == list(expected.values())


def test_a_flat_duration_is_read_in_any_notation(stage_files: Callable[..., Tables]) -> None:
    tables = stage_files(
        tracks__jsonl=[flat_track(n, duration=given) for n, given in enumerate((200, "200", "3:20", "PT3M20S", "00:03:20"), 1)]
    )
    assert tables["source_recording"]["duration_ms"].to_list() == [200_000] * 5


def test_flat_dirt_is_named(stage_files: Callable[..., Tables]) -> None:
    tables = stage_files(
        tracks__jsonl=[
            flat_track(1, release_date="0000-00-00"),
            flat_track(2, duration=0),
            flat_track(3, rank=1_200_000),
            flat_track(4, rank=-1, track_position="A1"),
            flat_track(0, id=None),
        ],
        albums__jsonl=[
            {"id": 302127, "title": "Discovery", "upc": "724384960650", "label": "Parlophone", "genre_id": -1, "type": "album"},
            {"id": 9, "title": "Hits", "upc": "0724384960651", "record_type": "compile", "genre_id": 113, "type": "album"},
        ],
    )
    assert rejects(tables) == {
        ("source_recording", "invalid_date", "line 1", "1", "release_date"),
        ("source_recording", "invalid_duration", "line 2", "2", "duration"),
        ("source_recording", "invalid_number", "line 4", "4", "popularity"),
        ("source_recording", "invalid_number", "line 4", "4", "track_number"),
        ("source_recording", "missing_id", "line 5", None, None),
        ("source_release", "invalid_gtin", "line 2", "9", "upc"),
    }
    assert row(tables, "source_recording", "3")["popularity"] == 1
    assert row(tables, "source_release", "302127")["gtin"] == "00724384960650"
    assert row(tables, "source_release", "302127")["label_name"] == "Parlophone"
    assert row(tables, "source_release", "302127")["release_date"] is None, "the album record counts, not the album inside a track"
    assert (row(tables, "source_release", "9")["release_type"], row(tables, "source_release", "9")["is_compilation"]) == (
        "compilation",
        True,
    )
    assert tables["source_genre"].select("entity_id", "genre", "genre_id").rows() == [("9", "Dance", "113")]


def test_tracks_listed_in_an_album_give_way_to_full_tracks(stage_files: Callable[..., Tables]) -> None:
    listed = [{"id": 1, "title": "Song", "duration": 1}, {"id": 2, "title": "Only here", "duration": 100}]
    tables = stage_files(
        albums__jsonl=[{"id": 302127, "title": "Discovery", "type": "album", "tracks": {"data": listed}}],
        tracks__jsonl=[flat_track(1)],
    )
    assert tables["source_recording"].select("external_id", "duration_ms", "release_id").rows() == [
        ("1", 224_000, "302127"),
        ("2", 100_000, "302127"),
    ]


def lined_track(**changes: object) -> Row:
    record = {
        "id": 19512574,
        "title": "Aeroplane",
        "version": "Remastered",
        "isrc": "USWB11600001",
        "duration": 285,
        "track_number": 3,
        "media_number": 1,
        "parental_warning": False,
        "performer": {"id": 64, "name": "Red, Hot & Co"},
        "performers": "Red, Hot & Co, MainArtist - Jay - Z, FeaturedArtist, Composer - Some One, Producer - DJ X, Remixer",
        "album": {
            "id": "0603497941032",
            "title": "One Hot Minute",
            "version": "2001 Remaster",
            "upc": "0603497941032",
            "label": {"id": 7, "name": "Warner"},
            "genres_list": ["Pop/Rock", "Pop/Rock→Rock", "Pop/Rock→Rock"],
            "release_date_original": "1995-09-12",
            "artist": {"id": 64, "name": "Red, Hot & Co"},
            "tracks_count": 13,
            "release_type": "album",
        },
    }
    return record | changes


def test_a_track_with_a_performers_line_gives_every_field(stage_files: Callable[..., Tables]) -> None:
    tables = stage_files(tracks__ndjson=[lined_track()])
    recording = tables["source_recording"].row(0, named=True)
    assert (recording["title"], recording["version"], recording["duration_ms"]) == ("Aeroplane", "Remastered", 285_000)
    assert [tuple(artist.values()) for artist in recording["artists"]] == [
        ("64", "Red, Hot & Co", "primary"),
        (None, "Jay - Z", "featured"),
        (None, "DJ X", "remixer"),
    ]
    release = row(tables, "source_release", "0603497941032")
    assert (release["gtin"], release["version"], release["label_name"]) == ("00603497941032", "2001 Remaster", "Warner")
    assert (release["release_date"], release["release_type"], release["track_count"]) == ("1995-09-12", "album", 13)
    assert tables["source_genre"].select("entity_kind", "position", "genre", "parent").rows() == [
        ("release", 0, "Pop/Rock", None),
        ("release", 1, "Rock", "Pop/Rock"),
    ]
    assert tables["source_label"].select("label_id", "name").rows() == [("7", "Warner")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A, MainArtist", [("A", "primary")]),
        ("Earth, Wind & Fire, MainArtist, Composer", [("Earth, Wind & Fire", "primary")]),
        ("A, Producer - B, Composer, Lyricist", []),
        ("A - B, MainArtist", [("A - B", "primary")]),
        ("A, Vocals, MainArtist - C, Remixer, MainArtist", [("A", "primary"), ("C", "remixer")]),
        ("", []),
        ("no role at all", []),
    ],
)
def test_performers_line_gives_names_and_roles(line: str, expected: list[tuple[str, str]]) -> None:
    assert read_performers(line) == expected


def test_genre_paths_keep_order_and_parents() -> None:
    assert read_genre_paths(["Jazz", "Jazz → Bebop→ Hard Bop", None, ""]) == [
        {"genre": "Jazz", "genre_id": None, "parent": None},
        {"genre": "Hard Bop", "genre_id": None, "parent": "Bebop"},
    ]
