r"""The flat-file form of streamsvc_b: \x01 between fields, \x02\n after records, comment lines first and a record count last.

Fields may hold line feeds; nothing is quoted; an empty field is unknown. Songs have no genre here, collections do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from simulator.nested import build_credit_list
from simulator.songs import NOBODY
from simulator.world_part import draw_malformed_count

if TYPE_CHECKING:
    from simulator.files import Closing, Content
    from simulator.rows import PlatformRows
    from simulator.settings import SimulationSettings

FIELD, RECORD = "\x01", "\x02\n"
HEADER_LINES = 5
EXPORTED = "1793491200000"
FIRST_ARTIST_ID = 200_000_000
TABLES: dict[str, tuple[str, ...]] = {
    "song": (
        "song_id",
        "name",
        "title_version",
        "search_terms",
        "parental_advisory_id",
        "artist_display_name",
        "collection_display_name",
        "view_url",
        "original_release_date",
        "itunes_release_date",
        "track_length",
        "copyright",
        "p_line",
        "preview_url",
        "preview_length",
    ),
    "collection": (
        "collection_id",
        "name",
        "title_version",
        "search_terms",
        "parental_advisory_id",
        "artist_display_name",
        "view_url",
        "artwork_url",
        "original_release_date",
        "itunes_release_date",
        "label_studio",
        "content_provider_name",
        "copyright",
        "p_line",
        "media_type_id",
        "is_compilation",
        "collection_type_id",
    ),
    "artist": ("artist_id", "name", "search_terms", "is_actual_artist", "view_url", "artist_type_id"),
    "artist_song": ("artist_id", "song_id"),
    "artist_collection": ("artist_id", "collection_id", "is_primary_artist", "role_id"),
    "collection_song": ("collection_id", "song_id", "track_number", "volume_number", "preorder_only"),
    "genre": ("genre_id", "parent_id", "name"),
    "genre_collection": ("genre_id", "collection_id", "is_primary"),
    "song_match": ("song_id", "isrc", "amg_track_id"),
    "collection_match": ("collection_id", "upc", "amg_album_id"),
}
"""Columns after `export_date`, which every table starts with."""
GENRE_IDS = {
    "Music": 34,
    "Dance": 17,
    "House": 1048,
    "Techno": 1050,
    "Trance": 1051,
    "Jungle/Drum'n'bass": 1049,
    "Electronic": 7,
    "Dubstep": 1298_0,
    "Breakbeat": 1044,
    "Garage": 1046,
    "Hardcore": 1047,
    "Ambient": 1056,
    "Downtempo": 1057,
    "Electronica": 1058,
    "IDM/Experimental": 1060,
    "Rock": 21,
    "Hard Rock": 1152,
    "Alternative": 20,
    "Indie Rock": 1004,
    "Punk": 1006,
    "Grunge": 1003,
    "Metal": 1153,
    "Death Metal/Black Metal": 1149,
    "Heavy Metal": 1153_0,
    "Pop": 14,
    "Adult Contemporary": 1131,
    "Teen Pop": 1135,
    "J-Pop": 27,
    "K-Pop": 51,
    "Hip-Hop/Rap": 18,
    "Rap": 1076,
    "Underground Rap": 1077,
    "East Coast Rap": 1070,
    "R&B/Soul": 15,
    "Soul": 1143,
    "Funk": 1139,
    "Contemporary R&B": 1136,
    "Jazz": 11,
    "Bebop": 1053_0,
    "Contemporary Jazz": 1107,
    "Cool Jazz": 1209,
    "Blues": 2,
    "Chicago Blues": 1007,
    "Electric Blues": 1013,
    "Country": 6,
    "Bluegrass": 1035,
    "Outlaw Country": 1040,
    "Singer/Songwriter": 10,
    "Contemporary Folk": 1063,
    "Traditional Folk": 1067,
    "Folk": 1289,
    "Classical": 5,
    "Opera": 1028,
    "Baroque Era": 1018,
    "Chamber Music": 1019,
    "Reggae": 24,
    "Roots Reggae": 1192,
    "Ska": 1194,
    "Modern Dancehall": 1183,
    "Latin": 12,
    "Salsa y Tropical": 1124,
    "Urbano latino": 1119,
    "Regional Mexicano": 1123,
    "Worldwide": 19,
    "African": 1203,
    "Afro-Beat": 1177,
    "Celtic": 1180,
    "Arabic": 1197,
    "Soundtrack": 16,
    "Original Score": 1168,
    "Musicals": 1166,
    "Christian & Gospel": 22,
    "Contemporary Gospel": 1100,
    "CCM": 1094,
}


def build_openings(_settings: SimulationSettings) -> dict[str, bytes]:
    """Return column names, primary key, types and export mode of every table."""
    return {
        table: RECORD.join(
            [
                "#export_date" + FIELD + FIELD.join(columns),
                "#primaryKey:" + columns[0],
                "#dbTypes:" + FIELD.join(["BIGINT"] * (len(columns) + 1)),
                "#exportMode:FULL",
                "##legal: for tests",
                "",
            ]
        ).encode()
        for table, columns in TABLES.items()
    }


def build_closings() -> dict[str, Closing]:
    """Return the last line of every table, which counts its records."""
    return dict.fromkeys(TABLES, lambda lines: f"#recordsWritten:{lines - HEADER_LINES}{RECORD}".encode())


def _encode_table(table: str, frame: pl.DataFrame) -> bytes:
    columns = [
        pl.lit(EXPORTED),
        *(pl.col(name).cast(pl.String).fill_null("") if name in frame.columns else pl.lit("") for name in TABLES[table]),
    ]
    lines = frame.select(pl.concat_str(columns, separator=FIELD) + RECORD).to_series()
    return "".join(lines.to_list()).encode()


def build_files(
    settings: SimulationSettings, block: int, albums: pl.DataFrame, songs: pl.DataFrame, artists: pl.DataFrame, source: PlatformRows
) -> dict[str, Content]:
    """Return the records of the tables of one block; a few song rows are cut off, a few have a placeholder in a numeric column."""
    display = pl.concat_str("artist_name", "second_artist_name", separator=" & ", ignore_nulls=True)
    date = pl.col("text").str.replace_all("-", " ", literal=True)
    song = songs.with_columns(
        song_id="id",
        name="title",
        title_version="version",
        artist_display_name=display,
        collection_display_name="album_title",
        original_release_date=date,
        itunes_release_date=date,
        track_length="duration_ms",
        preview_length=pl.lit(30_000),
        parental_advisory_id=pl.lit(3),
    )
    collection = albums.with_columns(
        collection_id="id",
        name="title",
        artist_display_name="artist_name",
        original_release_date=date,
        itunes_release_date=date,
        label_studio="label_name",
        content_provider_name=pl.lit("Orbit Digital Distribution"),
        media_type_id=pl.lit(1),
        is_compilation=(pl.col("kind") == "compilation").cast(pl.Int8),
        collection_type_id=pl.lit(1),
    )
    credits_of = (
        songs.select("id", build_credit_list(("artist", "second_artist", "guest", "second_guest", "remixer"), pl.col).alias("credit"))
        .explode("credit")
        .drop_nulls()
    )
    # `Music` is the root of every path and names no genre.
    paths = albums.select("id", "path").explode("path").drop_nulls().filter(pl.col("path") != "Music")
    primary = pl.col("path") == pl.col("path").last().over("id")
    out: dict[str, Content] = {
        "song": _encode_table("song", song) + _break_records(settings, source, song),
        "collection": _encode_table("collection", collection),
        "artist": _encode_table(
            "artist", artists.select(artist_id="id", name="name", is_actual_artist=pl.lit(1), artist_type_id=pl.lit(1))
        ),
        "artist_song": _encode_table("artist_song", credits_of.select(artist_id=pl.col("credit") + FIRST_ARTIST_ID, song_id="id")),
        "artist_collection": _encode_table(
            "artist_collection",
            albums.filter(pl.col("artist") != NOBODY).select(
                "artist_id", collection_id="id", is_primary_artist=pl.lit(1), role_id=pl.lit(1)
            ),
        ),
        "collection_song": _encode_table(
            "collection_song",
            songs.select(collection_id="album_id", song_id="id", track_number="track", volume_number=pl.lit(1), preorder_only=pl.lit(0)),
        ),
        "genre_collection": _encode_table(
            "genre_collection",
            paths.select(genre_id=pl.col("path").replace_strict(GENRE_IDS), collection_id="id", is_primary=primary.cast(pl.Int8)),
        ),
        "song_match": _encode_table("song_match", songs.filter(pl.col("isrc").is_not_null()).select(song_id="id", isrc="isrc")),
        "collection_match": _encode_table(
            "collection_match", albums.filter(pl.col("gtin").is_not_null()).select(collection_id="id", upc="gtin")
        ),
    }
    if block == 0:
        out["genre"] = _encode_table(
            "genre", pl.DataFrame({"genre_id": list(GENRE_IDS.values()), "parent_id": [34] * len(GENRE_IDS), "name": list(GENRE_IDS)})
        )
    return out


def _break_records(settings: SimulationSettings, source: PlatformRows, song: pl.DataFrame) -> bytes:
    count = draw_malformed_count(settings, source.rng, len(song))
    sample = song[source.rng.integers(0, max(1, len(song)), count)].with_columns(song_id=pl.lit("<UnknownKeyException>"))
    # Half of them lack columns; the other half have a placeholder where a number belongs.
    half = count // 2
    cut = b"".join((EXPORTED + FIELD + str(9_000_000 + number) + FIELD + "cut off" + RECORD).encode() for number in range(half))
    return _encode_table("song", sample.slice(half)) + cut
