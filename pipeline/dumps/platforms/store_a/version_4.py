"""Version 4 catalog tracks, releases, artists and labels as delivered rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.identifiers import normalise_gtin_expr
from pipeline.dumps.delivered_records.record_shapes import GENRES
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.duration_notations import parse_duration_ms
from pipeline.dumps.fields.lists import concat_lists, list_entries
from pipeline.dumps.staging.record_checks import nullify_blank

if TYPE_CHECKING:
    from pipeline.dumps.delivered_records.record_store import DeliveredStore

COMPILATION_ARTISTS = 6
"""Artists from which on a release with as many tracks is a compilation. It lists the artists of all tracks, never Various Artists."""
BARCODE_SHAPE = "^[0-9]{12,14}$"
_FLAGS = {"true": True, "false": False}
_NO_TEXT = pl.lit(None, dtype=pl.String)


def add_tracks(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add tracks, and the release that each names as a part."""
    # Items of a list inside a release have no more than an id and a name. They give way to a full record of the same id.
    has_detail = pl.any_horizontal(pl.col(name).is_not_null() for name in ("artists", "genre", "release", "length_ms", "isrc"))
    store.add("recording", rows.select(*_map_tracks(), is_part=~has_detail))
    release = pl.col("release").struct
    store.add(
        "release",
        rows.filter(release.field("id").is_not_null())
        .select(
            "source_file",
            "place",
            *split_catalog_number(pl.lit(None, dtype=pl.String)),
            id=release.field("id"),
            title=release.field("name"),
            slug=release.field("slug"),
            label_id=release.field("label").struct.field("id"),
            label_name=release.field("label").struct.field("name"),
            release_date=_choose_date(),
            is_part=pl.lit(value=True),
        )
        .unique("id", keep="first", maintain_order=True),
    )


def add_releases(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add releases. Those with no more than a name (items of a list) are parts."""
    kind = pl.col("type").struct.field("name").str.to_lowercase()
    artists = pl.col("artists").list.len()
    # An EP of two tracks with six remixers is not a compilation, so the tracks must be as many.
    many = (artists >= COMPILATION_ARTISTS) & (pl.col("track_count").cast(pl.Int64, strict=False).fill_null(artists) >= COMPILATION_ARTISTS)
    has_detail = pl.any_horizontal(pl.col(name).is_not_null() for name in ("artists", "label", "upc", "type", "track_count"))
    store.add(
        "release",
        rows.select(
            "source_file",
            "place",
            *split_catalog_number(pl.col("upc")),
            "track_count",
            "slug",
            id="id",
            title="name",
            artists=build_credits("artists", "primary"),
            label_id=pl.col("label").struct.field("id"),
            label_name=pl.col("label").struct.field("name"),
            release_date=_choose_date(),
            release_type=read_release_type(kind),
            is_compilation=(many | kind.str.contains("compilation")).fill_null(value=False),
            is_part=~has_detail,
        ),
    )


def add_artists(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add artists."""
    store.add("artist", rows.select("source_file", "place", "id", title="name"))


def add_labels(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add labels."""
    store.add("label", rows.select("source_file", "place", "id", title="name"))


def build_credits(column: str, role: str) -> pl.Expr:
    """Return a list of {id, name} as credits of one role; empty when null."""
    person = pl.element().struct
    credit = pl.struct(artist_id=person.field("id"), name=person.field("name"), role=pl.lit(role))
    return pl.col(column).list.eval(credit).cast(CREDITS).fill_null(pl.lit([], dtype=CREDITS))


def read_release_type(kind: pl.Expr) -> pl.Expr:
    """Return the type of a release. `release` is the store's word for any release and becomes null."""
    return pl.when(kind != "release").then(kind)


def split_catalog_number(upc: pl.Expr) -> list[pl.Expr]:
    """Return `upc` and `catalog_number`: some labels write a barcode in place of the catalogue number."""
    number = nullify_blank("catalog_number").str.strip_chars()
    # The check digit keeps catalogue numbers of 12 to 14 digits from being taken for barcodes.
    is_barcode = number.str.contains(BARCODE_SHAPE) & normalise_gtin_expr(number).is_not_null()
    stated = pl.when(upc.str.strip_chars() != "").then(upc)
    return [
        pl.coalesce(stated, pl.when(is_barcode).then(number)).alias("upc"),
        pl.when(~is_barcode).then(number).alias("catalog_number"),
    ]


def pair_genres(genre: pl.Expr, genre_id: pl.Expr, sub: pl.Expr, sub_id: pl.Expr) -> pl.Expr:
    """Return the genre, then the sub-genre below it."""
    both = list_entries(
        pl.struct(genre=genre, genre_id=genre_id, parent=_NO_TEXT),
        pl.struct(genre=sub, genre_id=sub_id, parent=pl.when(sub.is_not_null()).then(genre)),
    ).cast(GENRES)
    return both.list.filter(pl.element().struct.field("genre").is_not_null() | pl.element().struct.field("genre_id").is_not_null())


def _map_tracks() -> list[pl.Expr]:
    genre, sub_genre = pl.col("genre").struct, pl.col("sub_genre").struct
    # A length of 0 means unknown; the text `length` may still have it.
    has_length = nullify_blank("length_ms").is_not_null() & (pl.col("length_ms").cast(pl.Float64, strict=False) != 0).fill_null(value=True)
    duration = pl.when(has_length).then("length_ms").otherwise(pl.coalesce(nullify_blank("length"), nullify_blank("length_ms")))
    flags = [pl.when(pl.col(name) == "true").then(pl.lit(name.removeprefix("is_"))) for name in ("is_dj_edit", "is_ugc_remix")]
    return [
        *(pl.col(name) for name in ("source_file", "place", "id", "isrc", "slug")),
        pl.col("name").alias("title"),
        pl.col("mix_name").alias("version"),
        concat_lists(build_credits("artists", "primary"), build_credits("remixers", "remixer"), CREDITS).alias("artists"),
        join_primary_artists().alias("artist_credit"),
        duration.alias("duration"),
        parse_duration_ms(duration, "ms").alias("duration_ms"),
        pl.col("release").struct.field("id").alias("release_id"),
        _choose_date().alias("release_date"),
        pl.col("number").alias("track_number"),
        pl.col("is_explicit").replace_strict(_FLAGS, default=None, return_dtype=pl.Boolean).alias("is_explicit"),
        pl.concat_list(flags).list.drop_nulls().alias("traits"),
        pair_genres(genre.field("name"), genre.field("id"), sub_genre.field("name"), sub_genre.field("id")).alias("genres"),
    ]


def join_primary_artists() -> pl.Expr:
    """Return the artists without the remixers, as the store shows them."""
    names = pl.col("artists").list.eval(pl.element().struct.field("name")).list.join(", ")
    return pl.when(names != "").then(names)


def _choose_date() -> pl.Expr:
    """Return the date that the store shows, else the first day of sale."""
    return pl.coalesce(nullify_blank("new_release_date"), nullify_blank("publish_date"))
