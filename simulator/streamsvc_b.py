"""streamsvc_b as the media feed: song, album and artist exports in Parquet with hive-style paths; other form: EPF flat files.

Versions are separate in `titleVersion`; guests are an array of their own and, mostly, in the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from catalog_store.platforms import STREAMSVC_B
from simulator import epf
from simulator.cast import list_artists, spell_labels
from simulator.genre_words import STREAMSVC_B as GENRES
from simulator.mixed_fields import list_strays
from simulator.nested import build_credit_list, draw_main_strings
from simulator.randomness import make_uuids
from simulator.rows import build_platform_rows, spell_artists
from simulator.songs import NOBODY
from simulator.wording import add_versions, compose_titles
from simulator.world_part import Part, build_entity_truth, build_truth, draw_malformed_count, find_first_number

if TYPE_CHECKING:
    from simulator.files import Closing
    from simulator.settings import SimulationSettings

FIRST_SONG_ID, FIRST_ALBUM_ID, FIRST_ARTIST_ID = 1_100_000_000, 300_000_000, 200_000_000
VARIOUS_ID = "36270"
ALBUM_TYPES = {
    "album": "standard",
    "ep": "ep",
    "single": "single",
    "live": "standard",
    "edition": "standard",
    "deluxe": "deluxe",
    "compilation": "deluxe compilation",
}
TRAITS = {"remix": "remix", "live": "live", "karaoke": "karaoke"}
ADVISORY = ("none", "explicit", "not explicit", "cleaned")
ADVISORY_SHARES = (0.7, 0.9, 0.985, 1.0)
MODIFIED = "2026-10-24T20:39:30.600Z"
MAPS = ("name", "titleVersion", "releaseDate")


def build_openings(settings: SimulationSettings) -> dict[str, bytes]:
    """Return the first comment lines of the flat files; the Parquet form has none."""
    return epf.build_openings(settings)


def build_closings(_settings: SimulationSettings) -> dict[str, Closing]:
    """Return the last lines of the flat files, with record counts; the Parquet form has none."""
    return epf.build_closings()


def build_export_path(settings: SimulationSettings, feed: str) -> str:
    """Return the path of a feed's only part file below the dump folder."""
    number = np.array([settings.seed], dtype=np.int64)
    return f"{feed.capitalize()}/version=1/date={settings.dump_date}/time=16-01/part-00000-{make_uuids(number, feed)[0]}-c000.gz.parquet"


def build_part(settings: SimulationSettings, block: int) -> Part:
    """Return songs, albums and artists of one block."""
    source = build_platform_rows(settings, STREAMSVC_B, block)
    rates, rng, first = settings.get_rates(STREAMSVC_B), source.rng, find_first_number(settings, block)
    rows = compose_titles(
        settings,
        add_versions(settings, STREAMSVC_B, source),
        source,
        featured=rates.featured_in_title,
        in_title=rates.version_in_title,
        form=" ({})",
    )
    words, positions = draw_main_strings(source.releases["main"].to_numpy(), GENRES, rng, settings)
    paths = pl.Series([["Music", *path] for path in words], dtype=pl.List(pl.String)).gather(pl.Series(positions).replace(-1, None))
    albums = source.releases.with_columns(
        id=pl.Series(FIRST_ALBUM_ID + first + source.releases["release"].to_numpy()).cast(pl.String),
        path=paths,
        label_name=spell_labels(settings, STREAMSVC_B).gather(source.releases["label"].to_numpy()),
        artist_name=spell_artists(settings, STREAMSVC_B, source.releases["artist"]).fill_null("Various Artists"),
        artist_id=pl.when(pl.col("artist") == NOBODY)
        .then(pl.lit(VARIOUS_ID))
        .otherwise((pl.col("artist") + FIRST_ARTIST_ID).cast(pl.String)),
    )
    numbers = FIRST_SONG_ID + first + np.arange(len(rows))
    songs = rows.with_columns(
        id=pl.Series(numbers).cast(pl.String), advisory=pl.Series(ADVISORY).gather(np.searchsorted(ADVISORY_SHARES, rng.random(len(rows))))
    ).join(
        albums.select(
            "release",
            pl.col("id").alias("album_id"),
            pl.col("title").alias("album_title"),
            "text",
            "path",
            "label_name",
            pl.col("kind").alias("album_kind"),
        ),
        on="release",
        how="left",
        maintain_order="left",
    )
    count = draw_malformed_count(settings, rng, len(songs))
    # Some broken songs lack an id, the others a title.
    kind = pl.Series(rng.integers(0, 2, count))
    broken = songs[rng.integers(0, max(1, len(songs)), count)].with_columns(
        id=pl.when(kind == 0)
        .then(pl.lit(None, dtype=pl.String))
        .otherwise(pl.Series(numbers[-1:].sum() + 1 + np.arange(count)).cast(pl.String)),
        title=pl.when(kind == 0).then("title").otherwise(pl.lit("")),
    )
    out = Part(truth=build_truth(songs["id"], rows))
    out.files = {
        build_export_path(settings, "song"): _add_maps(_build_songs(pl.concat([songs, broken]))),
        build_export_path(settings, "album"): _add_maps(_build_albums(albums, songs)),
        build_export_path(settings, "artist"): _add_maps(_build_artists(settings, block, list_strays(settings, rows))),
    }
    artists = pl.Series(list_artists(settings, STREAMSVC_B, block))
    out.entities = {
        "artist": build_entity_truth("artist", artists + FIRST_ARTIST_ID, artists),
        "release": build_entity_truth("release", albums["id"], albums["number"]),
    }
    if settings.alternative_forms:
        out.alternative = epf.build_files(
            settings, block, albums, songs, _build_artists(settings, block, list_strays(settings, rows)), source
        )
    return out


def _add_maps(frame: pl.DataFrame) -> pa.Table:
    """Return the text columns of `MAPS` as map<locale, text> with the key `default`; null becomes an empty map."""
    # Polars has no map type, so these columns are built in Arrow.
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    for name in MAPS:
        if name in frame.columns:
            values = frame[name]
            # A null takes no item, so its map is empty.
            offsets = np.concatenate([[0], np.cumsum(values.is_not_null().to_numpy())])
            items = pa.array(values.drop_nulls().to_list(), pa.string())
            keys = pa.array(["default"] * len(items), pa.string())
            column = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)  # type: ignore[call-overload] # the stubs want 64-bit offsets
            table = table.set_column(table.column_names.index(name), pa.field(name, column.type), column)
    return table


def _build_genres(path: pl.Expr) -> pl.Expr:
    """Return the genre with its path, then the root, as the feed lists them; only the root if the album names no genre."""
    root = pl.struct(pl.lit("Music").alias("name"), pl.concat_list(pl.lit("Music")).alias("path"))
    own = pl.when(path.is_not_null()).then(pl.struct(path.list.last().alias("name"), path.alias("path")))
    return pl.concat_list(own, root).list.drop_nulls()


def _build_person(credit: str) -> pl.Expr:
    return pl.struct((pl.col(credit) + FIRST_ARTIST_ID).cast(pl.String).alias("id"), pl.col(f"{credit}_name").alias("name"))


def _build_songs(songs: pl.DataFrame) -> pl.DataFrame:
    trait = pl.col("kind").replace_strict(TRAITS, default=None, return_dtype=pl.String)
    compiled = pl.when(pl.col("album_kind") == "compilation").then(pl.lit("compilation"))
    role = pl.when(pl.col("artist") != NOBODY).then(
        pl.struct(
            pl.concat_str(pl.col("artist") + FIRST_ARTIST_ID).alias("artistId"),
            pl.col("artist_name").alias("artistName"),
            pl.lit("Performer").alias("roleName"),
        )
    )
    return songs.select(
        "id",
        nameDefault="title",
        name="title",
        titleVersion="version",
        primaryArtists=build_credit_list(("artist", "second_artist", "remixer"), _build_person),
        featuredArtists=build_credit_list(("guest", "second_guest"), _build_person),
        artistRoles=pl.concat_list(role).list.drop_nulls(),
        album=pl.struct(pl.col("album_id").alias("id"), pl.col("album_title").alias("name")),
        genres=_build_genres(pl.col("path")),
        durationInMillis="duration_ms",
        isrc="isrc",
        releaseDate="text",
        trackNumber="track",
        volumeNumber=pl.lit(1, dtype=pl.Int64),
        parentalAdvisoryType="advisory",
        contentTraits=pl.concat_list(trait, compiled).list.drop_nulls(),
        audioLocale=pl.lit("en"),
        copyright=pl.concat_str(pl.lit("\u2117 "), pl.col("text").str.slice(0, 4), pl.lit(" "), "label_name"),
        urlTemplate=pl.concat_str(pl.lit("https://music.apple.com/{country-code}/album/"), "album_id", pl.lit("?i="), "id"),
        lastModifiedTime=pl.lit(MODIFIED),
    )


def _build_albums(albums: pl.DataFrame, songs: pl.DataFrame) -> pl.DataFrame:
    members = songs.group_by("release", maintain_order=True).agg(songs=pl.struct("id"))
    return albums.join(members, on="release", how="left", maintain_order="left").select(
        "id",
        nameDefault="title",
        name="title",
        titleVersion=pl.when(pl.col("remaster_year") > 0).then(pl.lit("Remastered")),
        primaryArtists=pl.concat_list(pl.struct(pl.col("artist_id").alias("id"), pl.col("artist_name").alias("name"))),
        albumType=pl.col("kind").replace_strict(ALBUM_TYPES),
        recordLabels=pl.concat_list(pl.struct(pl.col("label_name").alias("name"))),
        contentProvider=pl.lit("Orbit Digital Distribution"),
        upc="gtin",
        genres=_build_genres(pl.col("path")),
        releaseDate="text",
        songs="songs",
        copyright=pl.concat_str(pl.lit("\u2117 "), "year", pl.lit(" "), "label_name"),
        contentTraits=pl.concat_list(pl.when(pl.col("kind") == "compilation").then(pl.lit("compilation"))).list.drop_nulls(),
        urlTemplate=pl.concat_str(pl.lit("https://music.apple.com/{country-code}/album/"), "id"),
        lastModifiedTime=pl.lit(MODIFIED),
    )


def _build_artists(settings: SimulationSettings, block: int, strays: pl.DataFrame) -> pl.DataFrame:
    numbers = list_artists(settings, STREAMSVC_B, block)
    own = pl.DataFrame(
        {
            "id": pl.Series(numbers + FIRST_ARTIST_ID).cast(pl.String),
            "nameDefault": spell_artists(settings, STREAMSVC_B, pl.Series(numbers)),
        }
    )
    own = pl.concat([own, strays.select(id=(pl.col("artist") + FIRST_ARTIST_ID).cast(pl.String), nameDefault="name")])
    if block == 0:
        own = pl.concat([pl.DataFrame({"id": [VARIOUS_ID], "nameDefault": ["Various Artists"]}), own])
    return own.with_columns(
        name="nameDefault",
        artistType=pl.lit("artist"),
        urlTemplate=pl.concat_str(pl.lit("https://music.apple.com/{country-code}/artist/"), "id"),
        lastModifiedTime=pl.lit(MODIFIED),
    )
