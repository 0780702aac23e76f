"""store_a as v4 catalogue objects, tracks and releases as gzipped NDJSON; other form: the set of CSV tables.

A shop of dance music: the mix name is separate and originals are called `Original Mix`; barcodes only on releases; one genre a track.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import STORE_A
from simulator.cast import list_artists, make_cast, spell_labels
from simulator.files import break_lines, insert_broken_lines
from simulator.genre_words import STORE_A as GENRES
from simulator.mixed_fields import list_strays
from simulator.nested import build_credit_list, build_slug, draw_main_strings, format_clock_duration
from simulator.randomness import draw_flags
from simulator.rows import build_label_truth, build_platform_rows, spell_artists
from simulator.songs import NOBODY
from simulator.wording import add_versions, compose_titles
from simulator.world_part import Part, build_entity_truth, build_truth, draw_malformed_count, find_first_number

if TYPE_CHECKING:
    from simulator.files import Closing, Content
    from simulator.rows import PlatformRows
    from simulator.settings import SimulationSettings

FIRST_TRACK_ID, FIRST_RELEASE_ID, FIRST_ARTIST_ID, FIRST_LABEL_ID = 40_000_000, 9_000_000, 5_000_000, 500_000
"""Above what the real platform has given out, so that a simulated dump can stand beside real excerpts."""
API = "https://api.beatport.com/v4/catalog"
ORIGINALS = ("Original Mix", None, "Original", "Original mix", "")
ORIGINAL_SHARES = (0.82, 0.93, 0.97, 0.99, 1.0)
"""Cumulated shares of what an original's mix name says."""
NO_REMIXERS = 0.1
"""Share of remixes whose `remixers` is empty although the mix name has one."""
RELEASE_TYPES = {
    "album": "Album",
    "ep": "EP",
    "single": "Single",
    "live": "Album",
    "edition": "Album",
    "deluxe": "Album",
    "compilation": "Compilation",
}
CSV_TABLES: dict[str, str] = {
    "bp_track.csv": "track_id,title,mix,genre_id,subgenre_id,key_id,label_id,release_id,isrc,bpm,duration_ms,release_date,track_number\n",
    "bp_artist.csv": "artist_id,artist_name,artist_url,updated_on\n",
    "bp_artist_track.csv": "artist_id,track_id,is_remixer,updated_on\n",
    "bp_release.csv": "release_id,release_title,release_date,label_id,catalog_number,upc,track_count\n",
    "bp_label.csv": "label_id,label_name,label_url,updated_on\n",
    "bp_genre.csv": "genre_id,genre_name,song_count,genre_url,updated_on\n",
    "bp_subgenre.csv": "subgenre_id,subgenre_name,song_count,genre_id,subgenre_url,updated_on,genre_url\n",
}
UPDATED = "2026-10-30 22:05:50"


def build_openings(_settings: SimulationSettings) -> dict[str, bytes]:
    """Return the header lines of the CSV form."""
    return {name: header.encode() for name, header in CSV_TABLES.items()}


def build_closings(_settings: SimulationSettings) -> dict[str, Closing]:
    """Return nothing: no text comes after the last block."""
    return {}


def build_part(settings: SimulationSettings, block: int) -> Part:
    """Return tracks and releases of one block."""
    source = build_platform_rows(settings, STORE_A, block)
    rates, rng, first = settings.get_rates(STORE_A), source.rng, find_first_number(settings, block)
    rows = compose_titles(
        settings,
        add_versions(settings, STORE_A, source),
        source,
        featured=rates.featured_in_title,
        in_title=rates.version_in_title,
        form=" ({})",
    )
    originals = pl.Series(ORIGINALS, dtype=pl.String).gather(np.searchsorted(ORIGINAL_SHARES, rng.random(len(rows))))
    genres, positions = draw_main_strings(source.releases["main"].to_numpy(), GENRES, rng, settings, always=True)
    table = pl.DataFrame(
        {
            "genre_id": [genre.genre_id for genre in genres],
            "genre": [genre.genre for genre in genres],
            "sub_genre_id": [genre.sub_genre_id for genre in genres],
            "sub_genre": [genre.sub_genre for genre in genres],
        },
        schema={"genre_id": pl.Int64, "genre": pl.String, "sub_genre_id": pl.Int64, "sub_genre": pl.String},
    )[positions]
    releases = pl.concat([source.releases, table], how="horizontal").with_columns(
        id=pl.col("release") + FIRST_RELEASE_ID + first,
        label_id=pl.col("label") + FIRST_LABEL_ID,
        label_name=spell_labels(settings, STORE_A).gather(source.releases["label"].to_numpy()),
    )
    tracks = rows.with_columns(
        id=pl.Series(FIRST_TRACK_ID + first + np.arange(len(rows))),
        mix_name=pl.when(pl.col("version").is_null()).then(originals).otherwise("version"),
        bpm=pl.Series(rng.integers(88, 176, len(rows))),
        says_remixers=pl.Series(~draw_flags(rng, len(rows), NO_REMIXERS)),
        explicit=pl.Series(draw_flags(rng, len(rows), 0.03)),
    ).join(
        releases.select(
            "release",
            pl.col("id").alias("release_id"),
            pl.col("title").alias("release_title"),
            "label_id",
            "label_name",
            "genre_id",
            "genre",
            "sub_genre_id",
            "sub_genre",
            "text",
            "catalog_number",
            "is_bogus",
        ),
        on="release",
        how="left",
        maintain_order="left",
    )
    count = draw_malformed_count(settings, rng, len(tracks))
    spoilt = tracks[rng.integers(0, max(1, len(tracks)), count)].with_columns(
        id=pl.Series(FIRST_TRACK_ID + first + len(rows) + np.arange(count))
    )
    # Bad records are encoded with the good ones and then broken, so that they differ by the fault alone.
    lines = _encode_tracks(pl.concat([tracks, spoilt]))
    out = Part(truth=build_truth(tracks["id"].cast(pl.String), rows))
    out.files = {
        "tracks.ndjson.gz": insert_broken_lines(
            lines.head(len(tracks)), break_lines(lines.tail(count).to_list() if count else [], rng), rng
        ),
        "releases.ndjson.gz": _encode_releases(releases, tracks),
    }
    artists = pl.Series(list_artists(settings, STORE_A, block))
    out.entities = {
        "artist": build_entity_truth("artist", artists + FIRST_ARTIST_ID, artists),
        "release": build_entity_truth("release", releases["id"], releases["number"]),
        "label": build_label_truth(settings, block, FIRST_LABEL_ID),
    }
    if settings.alternative_forms:
        out.alternative = _build_csv_tables(settings, block, releases, tracks, source)
    return out


def _build_person(credit: str) -> pl.Expr:
    number, name = pl.col(credit) + FIRST_ARTIST_ID, pl.col(f"{credit}_name")
    return pl.struct(
        number.alias("id"),
        name.alias("name"),
        build_slug(name).alias("slug"),
        pl.concat_str(pl.lit(f"{API}/artists/"), number, pl.lit("/")).alias("url"),
    )


def _build_genre(number: str, name: str) -> pl.Expr:
    return pl.struct(
        pl.col(number).alias("id"),
        pl.col(name).alias("name"),
        build_slug(pl.col(name)).alias("slug"),
        pl.concat_str(pl.lit(f"{API}/genres/"), number, pl.lit("/")).alias("url"),
    )


def _encode_tracks(tracks: pl.DataFrame) -> pl.Series:
    label = pl.struct(pl.col("label_id").alias("id"), pl.col("label_name").alias("name"), build_slug(pl.col("label_name")).alias("slug"))
    remixers = pl.concat_list(
        pl.when((pl.col("remixer") != NOBODY) & pl.col("says_remixers")).then(_build_person("remixer"))
    ).list.drop_nulls()
    track = pl.struct(
        build_credit_list(("artist", "second_artist", "guest", "second_guest"), _build_person).alias("artists"),
        pl.lit("published").alias("publish_status"),
        pl.lit(value=True).alias("available_worldwide"),
        "bpm",
        "catalog_number",
        pl.lit("2026-10-23T20:19:02-07:00").alias("encoded_date"),
        pl.lit(value=False).alias("exclusive"),
        _build_genre("genre_id", "genre").alias("genre"),
        "id",
        pl.lit(value=True).alias("is_available_for_streaming"),
        pl.col("explicit").alias("is_explicit"),
        pl.lit(value=False).alias("is_dj_edit"),
        "isrc",
        format_clock_duration(pl.col("duration_ms")).alias("length"),
        pl.col("duration_ms").alias("length_ms"),
        "mix_name",
        pl.col("title").alias("name"),
        pl.col("text").alias("new_release_date"),
        pl.lit(value=False).alias("pre_order"),
        pl.col("text").alias("publish_date"),
        pl.struct(
            pl.col("release_id").alias("id"),
            pl.col("release_title").alias("name"),
            label.alias("label"),
            build_slug(pl.col("release_title")).alias("slug"),
        ).alias("release"),
        remixers.alias("remixers"),
        build_slug(pl.col("title")).alias("slug"),
        pl.when(pl.col("sub_genre_id").is_not_null()).then(_build_genre("sub_genre_id", "sub_genre")).alias("sub_genre"),
        pl.concat_str(pl.lit(f"{API}/tracks/"), "id", pl.lit("/")).alias("url"),
    )
    return tracks.select(track.struct.json_encode()).to_series()


def _encode_releases(releases: pl.DataFrame, tracks: pl.DataFrame) -> bytes:
    """Return the releases. As in the store, `artists` has those of all tracks and `tracks` lists addresses in reverse order."""
    person = pl.struct(pl.col("artist") + FIRST_ARTIST_ID, pl.col("artist_name").alias("name")).struct.rename_fields(["id", "name"])
    gathered = tracks.group_by("release", maintain_order=True).agg(
        artists=person.unique(maintain_order=True),
        urls=pl.concat_str(pl.lit(f"{API}/tracks/"), "id", pl.lit("/")).reverse(),
        slowest=pl.col("bpm").min(),
        fastest=pl.col("bpm").max(),
    )
    release = pl.struct(
        "id",
        pl.col("title").alias("name"),
        build_slug(pl.col("title")).alias("slug"),
        pl.struct(pl.col("label_id").alias("id"), pl.col("label_name").alias("name"), build_slug(pl.col("label_name")).alias("slug")).alias(
            "label"
        ),
        "artists",
        pl.lit([], dtype=pl.List(pl.Int64)).alias("remixers"),
        pl.col("gtin").str.strip_prefix("00").alias("upc"),
        "catalog_number",
        pl.col("text").alias("publish_date"),
        pl.col("text").alias("new_release_date"),
        pl.struct(pl.lit(1).alias("id"), pl.col("kind").replace_strict(RELEASE_TYPES).alias("name")).alias("type"),
        "track_count",
        pl.struct(pl.col("slowest").alias("min"), pl.col("fastest").alias("max")).alias("bpm_range"),
        pl.col("urls").alias("tracks"),
        pl.lit(value=True).alias("enabled"),
        pl.lit("2026-10-30T22:05:50-07:00").alias("updated"),
    )
    lines = (
        releases.join(gathered, on="release", how="inner", maintain_order="left").select(release.struct.json_encode()).to_series().to_list()
    )
    return "".join(line + "\n" for line in lines).encode()


def _encode_csv(frame: pl.DataFrame) -> bytes:
    return frame.write_csv(include_header=False).encode()


def _build_csv_tables(
    settings: SimulationSettings, block: int, releases: pl.DataFrame, tracks: pl.DataFrame, source: PlatformRows
) -> dict[str, Content]:
    """Return the CSV set; the first block has all artists and labels, because the tables hold each once."""
    del source
    roles = [
        tracks.filter(pl.col(credit) != NOBODY).select(
            artist_id=pl.col(credit) + FIRST_ARTIST_ID,
            track_id="id",
            is_remixer=pl.lit(int(credit == "remixer")),
            updated_on=pl.lit(UPDATED),
        )
        for credit in ("artist", "second_artist", "guest", "second_guest", "remixer")
    ]
    out: dict[str, Content] = {
        "bp_track.csv": _encode_csv(
            tracks.select(
                "id",
                "title",
                "mix_name",
                "genre_id",
                "sub_genre_id",
                pl.lit(1),
                "label_id",
                "release_id",
                "isrc",
                "bpm",
                "duration_ms",
                "text",
                "track",
            )
        ),
        "bp_artist_track.csv": _encode_csv(pl.concat(roles)),
        "bp_release.csv": _encode_csv(
            releases.select("id", "title", "text", "label_id", "catalog_number", pl.col("gtin").str.strip_prefix("00"), "track_count")
        ),
    }
    if block == 0:
        cast = make_cast(settings)
        everyone = pl.Series(np.arange(len(cast.names)))
        artists = pl.DataFrame({"artist_id": everyone + FIRST_ARTIST_ID, "artist_name": spell_artists(settings, STORE_A, everyone)})
        strays = list_strays(settings, tracks).select(artist_id=pl.col("artist") + FIRST_ARTIST_ID, artist_name="name")
        artists = pl.concat([artists, strays])
        labels = pl.DataFrame(
            {"label_id": np.arange(len(cast.label_names)) + FIRST_LABEL_ID, "label_name": spell_labels(settings, STORE_A)}
        )
        flat = list(dict.fromkeys(genre for genres in GENRES.values() for genre in genres))
        mains = {genre.genre_id: genre.genre for genre in flat}
        subs = {genre.sub_genre_id: genre for genre in flat if genre.sub_genre_id is not None}
        url = pl.lit("/")
        out["bp_artist.csv"] = _encode_csv(artists.with_columns(url.alias("url"), pl.lit(UPDATED).alias("updated")))
        out["bp_label.csv"] = _encode_csv(labels.with_columns(url.alias("url"), pl.lit(UPDATED).alias("updated")))
        out["bp_genre.csv"] = _encode_csv(
            pl.DataFrame({"id": list(mains), "name": list(mains.values())}).with_columns(
                pl.lit(0).alias("n"), url.alias("url"), pl.lit(UPDATED).alias("updated")
            )
        )
        out["bp_subgenre.csv"] = _encode_csv(
            pl.DataFrame(
                {
                    "id": list(subs),
                    "name": [genre.sub_genre for genre in subs.values()],
                    "n": [0] * len(subs),
                    "genre": [genre.genre_id for genre in subs.values()],
                }
            ).with_columns(url.alias("url"), pl.lit(UPDATED).alias("updated"), url.alias("genre_url"))
        )
    return out
