"""streamsvc_c as JSON:API resources, one per line, a gzipped file per resource type; other form: flat track and album objects.

Durations are whole seconds; the version is separate, without brackets; credits carry no roles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import STREAMSVC_C
from simulator.cast import list_artists, make_cast, spell_labels
from simulator.files import break_lines, insert_broken_lines
from simulator.genre_words import STREAMSVC_C as GENRES
from simulator.mixed_fields import list_strays
from simulator.nested import build_credit_list, draw_main_strings, format_iso_duration
from simulator.randomness import draw_flags
from simulator.rows import CREDITS, build_platform_rows, spell_artists
from simulator.songs import NOBODY
from simulator.wording import add_versions, compose_titles
from simulator.world_part import Part, build_entity_truth, build_truth, draw_malformed_count, find_first_number

if TYPE_CHECKING:
    from simulator.files import Closing
    from simulator.rows import PlatformRows
    from simulator.settings import SimulationSettings

FIRST_TRACK_ID, FIRST_ALBUM_ID, FIRST_ARTIST_ID = 251_000_000, 381_000_000, 3_500_000
VARIOUS_ID = "2935"
PROVIDERS = ("Orbit Digital", "Northgate Distribution", "Tidewater Music Services", "Universal Relay")
ALBUM_TYPES = {
    "album": "ALBUM",
    "ep": "EP",
    "single": "SINGLE",
    "live": "ALBUM",
    "edition": "ALBUM",
    "deluxe": "ALBUM",
    "compilation": "ALBUM",
}
RECORD_TYPES = {
    "album": "album",
    "ep": "ep",
    "single": "single",
    "live": "album",
    "edition": "album",
    "deluxe": "album",
    "compilation": "compile",
}
GENRE_NAMES = tuple(dict.fromkeys(name for names in GENRES.values() for name in names))
ABSENT_VERSION = 0.3
"""Share of unversioned tracks that leave the attribute out instead of writing null."""


def build_openings(_settings: SimulationSettings) -> dict[str, bytes]:
    """Return nothing: no text comes before the first block."""
    return {}


def build_closings(_settings: SimulationSettings) -> dict[str, Closing]:
    """Return nothing: no text comes after the last block."""
    return {}


def build_part(settings: SimulationSettings, block: int) -> Part:
    """Return the resources of one block."""
    source = build_platform_rows(settings, STREAMSVC_C, block)
    rates, rng, first = settings.get_rates(STREAMSVC_C), source.rng, find_first_number(settings, block)
    rows = compose_titles(
        settings,
        add_versions(settings, STREAMSVC_C, source),
        source,
        featured=rates.featured_in_title,
        in_title=rates.version_in_title,
        form=" ({})",
    )
    names, positions = draw_main_strings(source.releases["main"].to_numpy(), GENRES, rng, settings)
    genre_names = pl.Series(names).gather(pl.Series(positions).replace(-1, None))
    numbers = pl.Series(GENRE_NAMES)
    albums = source.releases.with_columns(
        id=(pl.col("release") + FIRST_ALBUM_ID + first).cast(pl.String),
        genre_name=genre_names,
        genre_id=genre_names.replace_strict(numbers, pl.Series(np.arange(len(numbers)) + 1).cast(pl.String)),
        artist_id=pl.when(pl.col("artist") == NOBODY)
        .then(pl.lit(VARIOUS_ID))
        .otherwise((pl.col("artist") + FIRST_ARTIST_ID).cast(pl.String)),
        artist_name=spell_artists(settings, STREAMSVC_C, source.releases["artist"]).fill_null("Various Artists"),
        label_name=spell_labels(settings, STREAMSVC_C).gather(source.releases["label"].to_numpy()),
        provider=((pl.col("label") % len(PROVIDERS)) + 1).cast(pl.String),
    )
    tracks = rows.with_columns(
        id=pl.Series(FIRST_TRACK_ID + first + np.arange(len(rows))).cast(pl.String),
        explicit=pl.Series(draw_flags(rng, len(rows), 0.09)),
    ).join(
        albums.select(
            "release", pl.col("id").alias("album_id"), pl.col("title").alias("album_title"), "genre_id", "provider", "label_name", "text"
        ),
        on="release",
        how="left",
        maintain_order="left",
    )
    count = draw_malformed_count(settings, rng, len(tracks))
    spoilt = tracks[rng.integers(0, max(1, len(tracks)), count)].with_columns(
        id=pl.Series(FIRST_TRACK_ID + first + len(rows) + np.arange(count)).cast(pl.String)
    )
    out = Part(truth=build_truth(tracks["id"], rows))
    lines = _encode_tracks(pl.concat([tracks, spoilt]), source)
    out.files = {
        "tracks.ndjson.gz": insert_broken_lines(
            lines.head(len(tracks)), break_lines(lines.tail(count).to_list() if count else [], rng), rng
        ),
        "albums.ndjson.gz": _encode_lines(_build_album_resources(albums, tracks)),
        "artists.ndjson.gz": _encode_lines(_build_artist_resources(settings, block, list_strays(settings, rows))),
    }
    artists = pl.Series(list_artists(settings, STREAMSVC_C, block))
    out.entities = {
        "artist": build_entity_truth("artist", artists + FIRST_ARTIST_ID, artists),
        "release": build_entity_truth("release", albums["id"], albums["number"]),
    }
    if block == 0:
        out.files["genres.ndjson.gz"] = _encode_lines(_build_named_resources("genres", "genreName", GENRE_NAMES))
        out.files["providers.ndjson.gz"] = _encode_lines(_build_named_resources("providers", "name", PROVIDERS))
    if settings.alternative_forms:
        flat = _encode_flat_tracks(pl.concat([tracks, spoilt]))
        out.alternative = {
            "tracks.ndjson.gz": insert_broken_lines(
                flat.head(len(tracks)), break_lines(flat.tail(count).to_list() if count else [], rng), rng
            ),
            "albums.ndjson.gz": _encode_lines(_build_flat_albums(albums)),
        }
    return out


def _encode_lines(resources: pl.DataFrame) -> bytes:
    encoded = resources.select(pl.struct(pl.all()).struct.json_encode()).to_series().to_list()
    return "".join(line + "\n" for line in encoded).encode()


def _build_reference(kind: str, number: pl.Expr) -> pl.Expr:
    return pl.struct(number.cast(pl.String).alias("id"), pl.lit(kind).alias("type"))


def _build_to_one(kind: str, number: pl.Expr) -> pl.Expr:
    """Return a relationship with one member, or none for a null id."""
    return pl.struct(
        pl.concat_list(pl.when(number.is_not_null()).then(_build_reference(kind, number))).list.drop_nulls().alias("data")
    ).alias(kind)


def _encode_tracks(tracks: pl.DataFrame, source: PlatformRows) -> pl.Series:
    artists = build_credit_list(CREDITS, lambda credit: _build_reference("artists", pl.col(credit) + FIRST_ARTIST_ID))
    resource = pl.struct(
        "id",
        pl.lit("tracks").alias("type"),
        pl.struct(
            "title",
            "version",
            "isrc",
            format_iso_duration(pl.col("duration_ms")).alias("duration"),
            pl.concat_str(pl.lit("\u2117 "), pl.col("text").str.slice(0, 4), pl.lit(" "), "label_name").alias("copyright"),
            "explicit",
            pl.col("popularity"),
            pl.lit("PUBLIC").alias("accessType"),
            pl.concat_list(pl.lit("LOSSLESS")).alias("mediaTags"),
            pl.lit("UNKNOWN").alias("key"),
            pl.lit("UNKNOWN").alias("keyScale"),
            pl.lit(value=False).alias("spotlighted"),
        ).alias("attributes"),
        pl.struct(
            _build_to_one("albums", pl.col("album_id")),
            pl.struct(artists.alias("data")).alias("artists"),
            _build_to_one("genres", pl.col("genre_id")),
            _build_to_one("providers", pl.col("provider")),
        ).alias("relationships"),
    )
    lines = tracks.select(resource.struct.json_encode()).to_series()
    # A reader must accept both forms: a null, and no key at all.
    leaves_out = pl.Series(draw_flags(source.rng, len(lines), ABSENT_VERSION))
    return (
        pl.DataFrame({"line": lines, "out": leaves_out})
        .select(pl.when("out").then(pl.col("line").str.replace('"version":null,', "", literal=True)).otherwise("line"))
        .to_series()
    )


def _build_album_resources(albums: pl.DataFrame, tracks: pl.DataFrame) -> pl.DataFrame:
    item = pl.struct(
        "id", pl.lit("tracks").alias("type"), pl.struct(pl.lit(1).alias("volumeNumber"), pl.col("track").alias("trackNumber")).alias("meta")
    )
    items = tracks.group_by("release", maintain_order=True).agg(items=item, total_ms=pl.col("duration_ms").fill_null(0).sum())
    return albums.join(items, on="release", how="left", maintain_order="left").select(
        "id",
        type=pl.lit("albums"),
        attributes=pl.struct(
            "title",
            pl.col("gtin").alias("barcodeId"),
            pl.lit(1).alias("numberOfVolumes"),
            pl.col("track_count").alias("numberOfItems"),
            format_iso_duration(pl.col("total_ms")).alias("duration"),
            pl.lit(value=False).alias("explicit"),
            pl.col("text").alias("releaseDate"),
            pl.struct(pl.concat_str(pl.lit("\u00a9 "), "year", pl.lit(" "), "label_name").alias("text")).alias("copyright"),
            "popularity",
            pl.concat_list(pl.lit("LOSSLESS")).alias("mediaTags"),
            pl.col("kind").replace_strict(ALBUM_TYPES).alias("albumType"),
            pl.when(pl.col("remaster_year") > 0).then(pl.lit("Remastered")).alias("version"),
        ),
        relationships=pl.struct(
            _build_to_one("artists", pl.col("artist_id")),
            pl.struct(pl.col("items").alias("data")).alias("items"),
            _build_to_one("genres", pl.col("genre_id")),
            _build_to_one("providers", pl.col("provider")),
        ),
    )


def _build_artist_resources(settings: SimulationSettings, block: int, strays: pl.DataFrame) -> pl.DataFrame:
    numbers = list_artists(settings, STREAMSVC_C, block)
    own = pl.DataFrame(
        {
            "id": pl.Series(numbers + FIRST_ARTIST_ID).cast(pl.String),
            "name": spell_artists(settings, STREAMSVC_C, pl.Series(numbers)),
            "popularity": make_cast(settings).popularity[numbers].round(6),
        }
    )
    own = pl.concat([own, strays.select(id=(pl.col("artist") + FIRST_ARTIST_ID).cast(pl.String), name="name", popularity=pl.lit(0.0))])
    if block == 0:
        own = pl.concat([pl.DataFrame({"id": [VARIOUS_ID], "name": ["Various Artists"], "popularity": [0.0]}), own])
    return own.select("id", type=pl.lit("artists"), attributes=pl.struct("name", "popularity"))


def _build_named_resources(kind: str, attribute: str, names: tuple[str, ...]) -> pl.DataFrame:
    frame = pl.DataFrame({"id": pl.Series(np.arange(len(names)) + 1).cast(pl.String), attribute: names})
    return frame.select("id", type=pl.lit(kind), attributes=pl.struct(attribute))


def _encode_flat_tracks(tracks: pl.DataFrame) -> pl.Series:
    """Return flat objects: the version in brackets at the end of the title, and in its own field."""
    version = pl.when(pl.col("version").is_not_null()).then(pl.concat_str(pl.lit("("), "version", pl.lit(")"))).otherwise(pl.lit(""))

    def build_person(credit: str, role: str = "Main") -> pl.Expr:
        return pl.struct((pl.col(credit) + FIRST_ARTIST_ID).alias("id"), pl.col(f"{credit}_name").alias("name"), pl.lit(role).alias("role"))

    track = pl.struct(
        pl.col("id").cast(pl.Int64),
        pl.concat_str(pl.concat_str("title", version, separator=" ").str.strip_chars_end()).alias("title"),
        pl.col("title").alias("title_short"),
        version.alias("title_version"),
        "isrc",
        (pl.col("duration_ms") / 1000).round().cast(pl.Int64).fill_null(0).alias("duration"),
        pl.col("track").alias("track_position"),
        pl.lit(1).alias("disk_number"),
        (pl.col("popularity") * 1_000_000).round().cast(pl.Int64).alias("rank"),
        pl.col("text").alias("release_date"),
        pl.col("explicit").alias("explicit_lyrics"),
        pl.concat_list(
            pl.when(pl.col("artist") != NOBODY).then(build_person("artist")),
            *(
                pl.when(pl.col(credit) != NOBODY).then(build_person(credit, "Featured" if "guest" in credit else "Main"))
                for credit in CREDITS[1:]
            ),
        )
        .list.drop_nulls()
        .alias("contributors"),
        pl.struct((pl.col("artist") + FIRST_ARTIST_ID).alias("id"), pl.col("artist_name").alias("name")).alias("artist"),
        pl.struct(
            pl.col("album_id").cast(pl.Int64).alias("id"), pl.col("album_title").alias("title"), pl.col("text").alias("release_date")
        ).alias("album"),
        pl.lit("track").alias("type"),
    )
    return tracks.select(track.struct.json_encode()).to_series()


def _build_flat_albums(albums: pl.DataFrame) -> pl.DataFrame:
    genre = pl.when(pl.col("genre_name").is_not_null()).then(
        pl.struct(pl.col("genre_id").cast(pl.Int64).alias("id"), pl.col("genre_name").alias("name"))
    )
    return albums.select(
        pl.col("id").cast(pl.Int64),
        "title",
        upc=pl.col("gtin").str.strip_chars_start("0"),
        label="label_name",
        genre_id=pl.col("genre_id").cast(pl.Int64).fill_null(-1),
        genres=pl.struct(pl.concat_list(genre).list.drop_nulls().alias("data")),
        record_type=pl.col("kind").replace_strict(RECORD_TYPES),
        release_date="text",
        nb_tracks="track_count",
        artist=pl.struct(pl.col("artist_id").cast(pl.Int64).alias("id"), pl.col("artist_name").alias("name")),
        type=pl.lit("album"),
    )
