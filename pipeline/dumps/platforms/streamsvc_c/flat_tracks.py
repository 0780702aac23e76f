"""Flat tracks, albums and artists with numeric ids, `title_short` and `title_version`, `rank`, `contributors` as delivered rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.delivered_records.record_shapes import GENRES
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.duration_notations import parse_duration_ms
from pipeline.dumps.fields.lists import list_entries
from pipeline.dumps.staging.record_checks import nullify_blank

if TYPE_CHECKING:
    from pipeline.dumps.delivered_records.record_store import DeliveredStore

FULL_RANK = 1_000_000
EXPLICIT_CONTENT = ("1", "4")
"""Codes for explicit and partially explicit. 0 and 3 (edited) mean no; 2, 5, 6 and 7 mean unknown."""
CLEAN_CONTENT = ("0", "3")
NO_GENRE = "-1"
ROOT_GENRES = {
    "132": "Pop",
    "116": "Rap/Hip Hop",
    "152": "Rock",
    "113": "Dance",
    "165": "R&B",
    "85": "Alternative",
    "106": "Electro",
    "466": "Folk",
    "144": "Reggae",
    "129": "Jazz",
    "84": "Country",
    "98": "Classical",
    "173": "Films/Games",
    "464": "Metal",
    "169": "Soul & Funk",
    "2": "African",
    "16": "Asian",
    "153": "Blues",
    "75": "Brazilian",
    "81": "Indian",
    "95": "Kids",
    "197": "Latin",
}
"""The platform's 22 root genres, for albums that name their genre by id alone."""
_RELEASE_TYPES = {"compile": "compilation"}
_ROLES = {"main": "primary", "featured": "featured", "remixer": "remixer"}
_ENCLOSED = r"^\(((?:[^()]|\([^()]*\))*)\)$|^\[([^\[\]]*)\]$"


def add_tracks(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add tracks, and the album that each names as a part."""
    store.add("recording", map_recordings(rows.with_columns(release_id=pl.col("album").struct.field("id"))))
    album = pl.col("album").struct
    albums = rows.select(
        "source_file",
        "place",
        id=album.field("id"),
        title=album.field("title"),
        release_date=album.field("release_date"),
        is_part=pl.lit(value=True),
    )
    store.add("release", albums.drop_nulls("id").unique("id", keep="first", maintain_order=True))


def add_albums(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add albums, and the tracks that each lists as parts (list items lack the ISRC)."""
    # `label` is read as JSON because the other flat layout has an object there; here it is a text in quotes.
    content = pl.col("label").str.json_path_match("$")
    kind = nullify_blank("record_type").str.to_lowercase()
    store.add(
        "release",
        rows.select(
            "source_file",
            "place",
            "id",
            "title",
            "upc",
            "release_date",
            artists=_read_credits(),
            label_name=content,
            release_type=kind.replace(_RELEASE_TYPES),
            track_count="nb_tracks",
            genres=_read_genres(),
        ),
    )
    listed = rows.select("source_file", "place", album_id="id", track=pl.col("tracks").struct.field("data"))
    tracks = listed.explode("track").filter(pl.col("track").is_not_null()).unnest("track").rename({"album_id": "release_id"})
    store.add("recording", map_recordings(tracks).with_columns(is_part=pl.lit(value=True)))


def add_artists(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add artists."""
    store.add("artist", rows.select("source_file", "place", "id", title="name"))


def map_recordings(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the columns of a flat track and `release_id` as delivered recordings."""
    version = nullify_blank("title_version").str.strip_chars()
    # The version is in brackets here. Other layouts deliver it without.
    groups = version.str.extract_groups(_ENCLOSED)
    inner = pl.coalesce(groups.struct.field("1"), groups.struct.field("2")).str.strip_chars()
    # `title` is `title_short` and the version in one text: taken with the version it would say it twice.
    is_apart = version.is_not_null() & nullify_blank("title_short").is_not_null()
    return rows.select(
        "source_file",
        "place",
        "id",
        "isrc",
        "duration",
        "release_id",
        "release_date",
        title=pl.when(is_apart).then(pl.col("title_short")).otherwise(pl.coalesce(nullify_blank("title"), "title_short")),
        version=pl.when(is_apart).then(pl.coalesce(inner, version)),
        artists=_read_credits(),
        duration_ms=parse_duration_ms(pl.col("duration"), "s"),
        disc_number="disk_number",
        track_number="track_position",
        is_explicit=_is_explicit(),
        popularity="rank",
        popularity_share=(pl.col("rank").cast(pl.Float64, strict=False) / FULL_RANK).clip(upper_bound=1),
    )


def _is_explicit() -> pl.Expr:
    content, lyrics = pl.col("explicit_content_lyrics"), pl.col("explicit_lyrics")
    return (
        pl.when((lyrics == "true") | content.is_in(EXPLICIT_CONTENT))
        .then(statement=True)
        .when(content.is_in(CLEAN_CONTENT) | (content.is_null() & (lyrics == "false")))
        .then(statement=False)
    )


def _read_credits() -> pl.Expr:
    """Return the contributors with their roles; without any, the one artist."""
    person = pl.element().struct
    role = person.field("role").str.to_lowercase().replace_strict(_ROLES, default="primary", return_dtype=pl.String)
    listed = pl.col("contributors").list.eval(pl.struct(artist_id=person.field("id"), name=person.field("name"), role=role)).cast(CREDITS)
    artist = pl.col("artist").struct
    one = list_entries(pl.struct(artist_id=artist.field("id"), name=artist.field("name"), role=pl.lit("primary"))).cast(CREDITS)
    return pl.when(listed.list.len() > 0).then(listed).when(pl.col("artist").is_not_null()).then(one)


def _read_genres() -> pl.Expr:
    """Return the named genres; without any, the one of `genre_id`."""
    genre = pl.element().struct
    no_text = pl.lit(None, dtype=pl.String)
    named = pl.struct(genre=genre.field("name"), genre_id=genre.field("id"), parent=no_text)
    listed = pl.col("genres").struct.field("data").list.eval(named).cast(GENRES)
    # Genres are on albums only, and -1 says that there is none.
    genre_id = pl.when(nullify_blank("genre_id") != NO_GENRE).then(pl.col("genre_id"))
    name = genre_id.replace_strict(ROOT_GENRES, default=None, return_dtype=pl.String)
    one = list_entries(pl.struct(genre=name, genre_id=genre_id, parent=no_text)).cast(GENRES)
    return pl.when(listed.list.len() > 0).then(listed).when(genre_id.is_not_null()).then(one)
