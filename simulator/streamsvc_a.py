"""streamsvc_a as the relational tables of a bulk release (2025 shape), one Parquet file per table; other form: track objects as NDJSON.

Every track is on exactly one album, so a recording on a single and an album is two tracks of one ISRC. Credit order is row order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import STREAMSVC_A
from simulator.cast import list_artists, make_cast, spell_labels
from simulator.files import break_lines, insert_broken_lines
from simulator.genre_words import STREAMSVC_A as GENRES
from simulator.mixed_fields import list_strays
from simulator.nested import build_credit_list, draw_main_strings
from simulator.randomness import draw_flags, make_base62_ids, make_generator
from simulator.rows import CREDITS, build_platform_rows, spell_artists
from simulator.songs import NOBODY
from simulator.wording import add_versions, compose_titles
from simulator.world_part import Part, build_entity_truth, build_truth, draw_malformed_count, find_first_number

if TYPE_CHECKING:
    from simulator.files import Closing
    from simulator.rows import PlatformRows
    from simulator.settings import SimulationSettings

VARIOUS_ROWID, FIRST_ARTIST_ROWID = 1, 2
VARIOUS_ID = "0LyfQWJT6nXafLPZqxe9Of"
FETCHED_MS = 1_793_400_000_000
MARKETS = (
    "AD,AE,AR,AT,AU,BE,BG,BR,CA,CH,CL,CO,CZ,DE,DK,EE,ES,FI,FR,GB,GR,HU,IE,IL,IS,IT,JP,KR,MX,NL,NO,NZ,PL,PT,RO,SE,US,ZA",
    "",
    "US,CA,MX",
    "DE,AT,CH",
    "JP",
    "GB,IE",
    "FR,BE,CH,LU",
)
MARKET_WEIGHTS = (0.9, 0.94, 0.96, 0.97, 0.98, 0.99, 1.0)
"""Cumulated. The second set is empty: nowhere on offer, still a valid catalogue row."""
ALBUM_TYPES = {
    "album": "album",
    "ep": "single",
    "single": "single",
    "live": "album",
    "edition": "album",
    "deluxe": "album",
    "compilation": "compilation",
}
GENRES_PER_ARTIST = 3


def build_openings(_settings: SimulationSettings) -> dict[str, bytes]:
    """Return nothing: no text comes before the first block."""
    return {}


def build_closings(_settings: SimulationSettings) -> dict[str, Closing]:
    """Return nothing: no text comes after the last block."""
    return {}


def build_part(settings: SimulationSettings, block: int) -> Part:
    """Return the table rows of one block."""
    source = build_platform_rows(settings, STREAMSVC_A, block)
    rates = settings.get_rates(STREAMSVC_A)
    rows = compose_titles(
        settings,
        add_versions(settings, STREAMSVC_A, source),
        source,
        featured=rates.featured_in_title,
        in_title=rates.version_in_title,
        form=" - {}",
    )
    first = find_first_number(settings, block)
    numbers = first + np.arange(len(rows))
    rows = rows.with_columns(
        rowid=pl.Series(numbers + 1),
        album_rowid=first + 1 + pl.col("release"),
        id=make_base62_ids(numbers, "streamsvc_a track"),
        explicit=pl.Series(draw_flags(source.rng, len(rows), 0.09)).cast(pl.Int64),
    )
    albums = _build_albums(settings, source, first)
    tracks = _build_tracks(rows, source)
    broken = _build_broken_tracks(settings, source, tracks, first + len(rows))
    out = Part(truth=build_truth(rows["id"], rows))
    out.files = {
        "tracks.parquet": pl.concat([tracks, broken]),
        "albums.parquet": albums,
        "artists.parquet": _build_artists(settings, block, list_strays(settings, rows)),
        "track_artists.parquet": _build_track_artists(rows),
        "artist_albums.parquet": _build_artist_albums(albums, source, rows),
        "artist_genres.parquet": _build_artist_genres(settings, block),
    }
    artists = list_artists(settings, STREAMSVC_A, block)
    out.entities = {
        "artist": build_entity_truth("artist", make_base62_ids(artists, "streamsvc_a artist"), pl.Series(artists)),
        "release": build_entity_truth("release", albums["id"], source.releases["number"]),
    }
    if block == 0:
        out.files["available_markets.parquet"] = pl.DataFrame({"rowid": np.arange(len(MARKETS)) + 1, "available_markets": MARKETS})
    if settings.alternative_forms:
        out.alternative["tracks.ndjson.gz"] = _encode_track_objects(settings, source, rows, albums)
    return out


def _build_albums(settings: SimulationSettings, source: PlatformRows, first: int) -> pl.DataFrame:
    releases, rng, count = source.releases, source.rng, len(source.releases)
    gtin, form = pl.col("gtin"), pl.col("form")
    labels = spell_labels(settings, STREAMSVC_A).gather(releases["label"].to_numpy())
    return releases.with_columns(
        form=pl.Series(rng.random(count)), label_name=labels, market=pl.Series(np.searchsorted(MARKET_WEIGHTS, rng.random(count)) + 1)
    ).select(
        rowid=first + 1 + pl.col("release"),
        id=make_base62_ids(first + releases["release"].to_numpy(), "streamsvc_a album"),
        fetched_at=FETCHED_MS + pl.int_range(pl.len()) * 1000,
        name="title",
        album_type=pl.col("kind").replace_strict(ALBUM_TYPES),
        available_markets_rowid=pl.col("market").cast(pl.Int64),
        external_id_upc=pl.when(form < 0.3)  # noqa: PLR2004 - a third of each spelling
        .then(gtin)
        # Three spellings of one barcode: 14, 13 and 12 digits.
        .when((form < 0.6) & gtin.str.starts_with("0"))  # noqa: PLR2004
        .then(gtin.str.slice(1))
        .otherwise(gtin.str.strip_prefix("00")),
        external_id_amgid=pl.lit(None, dtype=pl.String),
        copyright_c=pl.concat_str("year", pl.lit(" "), "label_name"),
        copyright_p=pl.concat_str(pl.lit("(P) "), "year", pl.lit(" "), "label_name"),
        label="label_name",
        popularity=(pl.col("popularity") * 100).round().cast(pl.Int64),
        release_date="text",
        release_date_precision="precision",
        total_tracks="track_count",
    )


def _build_tracks(rows: pl.DataFrame, source: PlatformRows) -> pl.DataFrame:
    return rows.select(
        "rowid",
        "id",
        fetched_at=FETCHED_MS + pl.int_range(pl.len()) * 1000,
        name="title",
        preview_url=pl.lit(None, dtype=pl.String),
        album_rowid="album_rowid",
        track_number="track",
        external_id_isrc="isrc",
        external_id_ean=pl.lit(None, dtype=pl.String),
        external_id_upc=pl.lit(None, dtype=pl.String),
        popularity=(pl.col("popularity") * 100).round().cast(pl.Int64),
        available_markets_rowid=pl.Series(np.searchsorted(MARKET_WEIGHTS, source.rng.random(len(rows))) + 1).cast(pl.Int64),
        disc_number=pl.lit(1, dtype=pl.Int64),
        duration_ms=pl.col("duration_ms").fill_null(0),
        explicit="explicit",
    )


def _build_broken_tracks(settings: SimulationSettings, source: PlatformRows, tracks: pl.DataFrame, number: int) -> pl.DataFrame:
    """Return bad rows: no name (a takedown), an invalid id, a repeated id."""
    count = draw_malformed_count(settings, source.rng, len(tracks))
    kind = pl.Series(source.rng.integers(0, 3, count))
    numbers = number + np.arange(count)
    return tracks[source.rng.integers(0, max(1, len(tracks)), count)].with_columns(
        rowid=pl.Series(numbers + 1),
        name=pl.when(kind == 0).then(pl.lit("")).otherwise("name"),
        id=pl.when(kind == 0)
        .then(make_base62_ids(numbers, "streamsvc_a track"))
        .when(kind == 1)
        .then(pl.lit("spotify:local:") + pl.Series(numbers).cast(pl.String))
        .otherwise("id"),
    )


def _build_artists(settings: SimulationSettings, block: int, strays: pl.DataFrame) -> pl.DataFrame:
    numbers = list_artists(settings, STREAMSVC_A, block)
    popularity = make_cast(settings).popularity[numbers]
    own = pl.DataFrame(
        {
            "rowid": numbers + FIRST_ARTIST_ROWID,
            "id": make_base62_ids(numbers, "streamsvc_a artist"),
            "fetched_at": FETCHED_MS + numbers,
            "name": spell_artists(settings, STREAMSVC_A, pl.Series(numbers)),
            "followers_total": (10 ** (popularity * 7)).astype(np.int64),
            "popularity": (popularity * 100).round().astype(np.int64),
        }
    )
    if len(strays):
        own = pl.concat([own, _build_stray_artists(strays)])
    # Various Artists belongs to no block and is written once.
    if block:
        return own
    various = {
        "rowid": VARIOUS_ROWID,
        "id": VARIOUS_ID,
        "fetched_at": FETCHED_MS,
        "name": "Various Artists",
        "followers_total": 0,
        "popularity": 0,
    }
    return pl.concat([pl.DataFrame(various, schema=own.schema), own])


def _build_stray_artists(strays: pl.DataFrame) -> pl.DataFrame:
    return strays.select(
        rowid=pl.col("artist") + FIRST_ARTIST_ROWID,
        id=make_base62_ids(strays["artist"].to_numpy(), "streamsvc_a artist"),
        fetched_at=FETCHED_MS + pl.col("artist"),
        name="name",
        followers_total=pl.lit(0, dtype=pl.Int64),
        popularity=pl.lit(0, dtype=pl.Int64),
    )


def _build_track_artists(rows: pl.DataFrame) -> pl.DataFrame:
    """Return artist, co-artist, guests and remixer of each track, in this order and without roles."""
    return (
        rows.select("rowid", build_credit_list(CREDITS, pl.col).alias("credits"))
        .explode("credits")
        .select(track_rowid="rowid", artist_rowid=pl.col("credits") + FIRST_ARTIST_ROWID)
        .drop_nulls()
    )


def _build_artist_albums(albums: pl.DataFrame, source: PlatformRows, rows: pl.DataFrame) -> pl.DataFrame:
    number = pl.col("artist")
    own = albums.select(
        artist_rowid=source.releases.select(
            pl.when(number == NOBODY).then(VARIOUS_ROWID).otherwise(number + FIRST_ARTIST_ROWID)
        ).to_series(),
        album_rowid="rowid",
        is_appears_on=pl.lit(0, dtype=pl.Int64),
        is_implicit_appears_on=pl.lit(0, dtype=pl.Int64),
        index_in_album=pl.lit(0, dtype=pl.Int64),
    )
    guests = (
        rows.filter(pl.col("guest") != NOBODY)
        .select(
            artist_rowid=pl.col("guest") + FIRST_ARTIST_ROWID,
            album_rowid="album_rowid",
            is_appears_on=pl.lit(1, dtype=pl.Int64),
            is_implicit_appears_on=pl.lit(1, dtype=pl.Int64),
            index_in_album=pl.lit(None, dtype=pl.Int64),
        )
        .unique(maintain_order=True)
    )
    return pl.concat([own, guests])


def _build_artist_genres(settings: SimulationSettings, block: int) -> pl.DataFrame:
    numbers = list_artists(settings, STREAMSVC_A, block)
    rng = make_generator(settings.seed, "streamsvc_a genres", block)
    parts = []
    for round_number in range(GENRES_PER_ARTIST):
        words, positions = draw_main_strings(make_cast(settings).mains[numbers], GENRES, rng, settings)
        is_tagged = (positions >= 0) & (draw_flags(rng, len(numbers), 0.6) if round_number else True)
        parts.append(
            pl.DataFrame({"artist_rowid": numbers[is_tagged] + FIRST_ARTIST_ROWID, "genre": pl.Series(words).gather(positions[is_tagged])})
        )
    return pl.concat(parts).unique(maintain_order=True).sort("artist_rowid", maintain_order=True)


def _encode_track_objects(settings: SimulationSettings, source: PlatformRows, rows: pl.DataFrame, albums: pl.DataFrame) -> bytes:
    """Return track objects of the web interface; a few lines are broken, a few are local files without id."""
    with_ids = rows.with_columns(
        make_base62_ids(rows[credit].clip(lower_bound=0).to_numpy(), "streamsvc_a artist").alias(f"{credit}_id") for credit in CREDITS
    )
    album = albums.select(
        "rowid",
        pl.struct(
            "album_type", "id", "name", "release_date", "release_date_precision", "total_tracks", pl.lit("album").alias("type")
        ).alias("album"),
    )
    frame = with_ids.join(album, left_on="album_rowid", right_on="rowid", how="left", maintain_order="left")
    track = pl.struct(
        "album",
        build_credit_list(
            CREDITS,
            lambda credit: pl.struct(
                pl.col(f"{credit}_id").alias("id"), pl.col(f"{credit}_name").alias("name"), pl.lit("artist").alias("type")
            ),
        ).alias("artists"),
        pl.lit(1).alias("disc_number"),
        pl.col("duration_ms").fill_null(0),
        pl.col("explicit") == 1,
        pl.struct(pl.col("isrc")).alias("external_ids"),
        "id",
        pl.lit(value=False).alias("is_local"),
        pl.col("title").alias("name"),
        (pl.col("popularity") * 100).round().cast(pl.Int64).alias("popularity"),
        pl.col("track").alias("track_number"),
        pl.lit("track").alias("type"),
        pl.concat_str(pl.lit("spotify:track:"), "id").alias("uri"),
    )
    lines = (
        # A track without a code has an empty object there, where JSON encoding writes a null.
        frame.select(track.struct.json_encode()).to_series().str.replace('"external_ids":{"isrc":null}', '"external_ids":{}', literal=True)
    )
    broken = lines.gather(source.rng.integers(0, len(lines), draw_malformed_count(settings, source.rng, len(lines)))).str.replace(
        r'"id":"\w{22}","is_local":false', '"id":null,"is_local":true'
    )
    return insert_broken_lines(lines, break_lines(broken.to_list(), source.rng), source.rng)
