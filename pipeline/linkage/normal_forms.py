"""Source records -> normal forms: the keys by which records are linked. Only this module reads titles and names as delivered.

Costly work runs on the distinct strings of a slice of rows. Add a column here when a later stage compares it. Out of scope:
limits (guards.py).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.name_keys import build_title_keys_frame, compact_expr, compose_display_title_expr
from catalog_store.name_keys.spellings import drop_article_expr, unify_spellings_series
from catalog_store.record_keys.content_hash import LINKED_COLUMNS, add_content_hash
from pipeline.linkage.atoms import choose_stand_in_artist
from pipeline.linkage.audio_channels import add_channels
from pipeline.linkage.credits import list_credits, number_name, read_lead_artists
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.generic_titles import is_movement_title, is_title_of_work
from pipeline.linkage.mixed_fields import read_mixed_fields
from pipeline.linkage.sorted_runs import find_run_starts

if TYPE_CHECKING:
    from pipeline.linkage.sorted_runs import Places

RECORD_COLUMNS = (*LINKED_COLUMNS, "content_hash")
"""Columns of `source_recording` that linkage reads."""

NORMAL_SCHEMA = pl.Schema(
    {
        "platform": pl.String(),
        "external_id": pl.String(),
        "artist_key": pl.String(),
        "artist_hash": pl.UInt32(),
        "lead": pl.Int64(),
        "title_key": pl.String(),
        "stem_key": pl.String(),
        "number_key": pl.String(),
        "variant": pl.String(),
        "names": pl.List(pl.String),
        "credit_names": pl.List(pl.Int64),
        "credit_artists": pl.List(pl.Int64),
        "isrcs": pl.List(pl.String),
        "duration_ms": pl.Int32(),
        "release_id": pl.String(),
        "disc_number": pl.Int16(),
        "track_number": pl.Int16(),
        "repeats": pl.String(),
        "title_names": pl.List(pl.String),
        "readings": pl.List(pl.UInt64),
        "content_hash": pl.Int64(),
    }
)

# Numbers of parts and volumes, and other letters that distinguish two pieces of one name: `Side A`, `in D minor`. A single `i`, `v` or
# `x` counts only after a label: alone it is a word more often.
_NUMBERS = (
    r"[0-9]+|\b(?:ii|iii|iv|vi|vii|viii|ix|xi|xii|xiii|xiv|xv)\b"
    r"|\b(?:pt|part|vol|no|act|chapter|teil) (?:i|v|x|one|two|three|four|five|six)\b"
    r"|\b(?:pt|part|teil|side|seite|theme|take|version|disc) [a-h]\b"
    r"|\b[a-h](?: (?:flat|sharp)|is|es|s)? (?:major|minor|dur|moll)\b"
)

_TENS, _ONES = ("", "X"), ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
_ROMAN_NUMBERS = {10 * ten + one: _TENS[ten] + _ONES[one - 1] for ten in (0, 1) for one in range(1, 11)}
_MOVEMENT_NUMBER = r"^(.*\S: ?)(?:N[or]\.? ?)?([1-9]|1[0-9]|20)[.,] (\pL.*)$"
_HEADING_VARIANT = r"^(?:(?:live|unplugged|demo|acoustic|instrumental|mono|stereo)(?::[^+]*)?(?:\+|$))+$"
_CONCERT_VARIANT = r"^live(?:$|:)"


def normalise(records: pl.DataFrame, names: pl.DataFrame, artists: pl.DataFrame) -> pl.DataFrame:
    """Return the normal form of each record.

    Args:
        records: rows of `source_recording`, at least RECORD_COLUMNS.
        names: `credits.build_name_table` over ALL records and artists; otherwise slices cut joined names differently.
        artists: `platform`, `artist_id`, `name` of `source_artist`; may be empty.

    Returns:
        NORMAL_SCHEMA, in the order of the rows.

    Raises:
        FailingRowsError: names the first record that cannot be read.
    """
    return run_on_rows(records, lambda rows: _normalise_rows(rows, names, artists), ("platform", "external_id"))


def _normalise_rows(records: pl.DataFrame, names: pl.DataFrame, artists: pl.DataFrame) -> pl.DataFrame:
    records = add_content_hash(records.select(column for column in RECORD_COLUMNS if column in records.columns)).with_row_index("row")
    records = records.with_columns(shown=compose_display_title_expr(pl.col("title"), pl.col("version")))
    rows = records.hstack(read_titles(records["shown"]))
    if "heading" in rows.columns:
        rows = _read_headings(_read_movements(rows))
    # Rows without any credit stay: they have no lead artist, and their ISRC stands in for one.
    rows = rows.join(read_lead_artists(list_credits(records), names, artists), on="row", how="left", maintain_order="left")
    rows = rows.with_columns(
        pl.col("artist_key", "remixer_key").fill_null(""), pl.col("names", "credit_names", "credit_artists").fill_null([])
    )
    rows = _read_mixed_rows(rows, names)
    rows = rows.with_columns(variant=_add_flags(pl.col("variant"), pl.col("remixer_key"), pl.col("traits"), pl.col("duration_ms")))
    return add_artist_hash(rows)


def read_titles(shown: pl.Series) -> pl.DataFrame:
    """Return title_key, stem_key, number_key and variant of each title."""
    # A slice repeats titles: singles, albums and compilations hold the same song.
    first, inverse = _find_distinct(shown)
    keys = build_title_keys_frame(_unify_movements(shown.gather(first)))
    keys = keys.with_columns(unify_spellings_series(keys[name]) for name in ("core", "stem"))
    # A stem is what a title may leave out: `The Model` itself must not be in `Das Model`.
    keys = keys.with_columns(drop_article_expr(pl.col("stem"))).with_columns(
        number_key=pl.col("core").str.extract_all(_NUMBERS).list.join(" "),
        title_key=compact_expr(pl.col("core")),
        stem_key=compact_expr(pl.col("stem")),
        variant=add_channels(pl.col("variant"), pl.col("notes")),
    )
    return keys.select(pl.col("title_key", "stem_key", "number_key", "variant").gather(inverse))


def _unify_movements(titles: pl.Series) -> pl.Series:
    """Write the number of a movement as most platforms do: `Op. 15: No. 7, Träumerei`, `Op. 15: 7. Träumerei`, `Op. 15: VII. Träumerei`.

    Digits would run together with those of the catalogue number, because keys have no spaces.
    """
    places = titles.str.contains(_MOVEMENT_NUMBER).arg_true()
    if places.is_empty():
        return titles
    few = titles.gather(places).str.extract_groups(_MOVEMENT_NUMBER).struct.unnest()
    numbered = pl.concat_str("1", pl.col("2").cast(pl.Int64).replace_strict(_ROMAN_NUMBERS, return_dtype=pl.String), pl.lit(". "), "3")
    return titles.scatter(places, few.select(numbered).to_series())


def _read_movements(rows: pl.DataFrame) -> pl.DataFrame:
    """Read the titles of movements again, together with the work above them: `Allegro` by itself identifies nothing."""
    is_movement = rows.select(
        is_title_of_work(pl.col("heading")).fill_null(value=False) & is_movement_title(pl.col("title_key"))
    ).to_series()
    if not is_movement.any():
        return rows
    movements = rows.filter(is_movement).with_columns(shown=pl.concat_str("heading", pl.lit(": "), "shown"))
    movements = movements.with_columns(read_titles(movements["shown"]))
    return pl.concat([rows.filter(~is_movement), movements]).sort("row")


def _read_headings(rows: pl.DataFrame) -> pl.DataFrame:
    """Give a track that names no version the one that the heading above it names: `Mono`, `Live At The Roxy, 1977`, `Tour [Live '83]`."""
    headings = rows.filter(pl.col("variant") == "").select(pl.col("heading").drop_nulls().unique().sort())
    if headings.is_empty():
        return rows
    # Behind a title, a heading that is a version has no words of its own.
    behind = read_titles(headings.select("x (" + pl.col("heading") + ")").to_series())
    own = read_titles(headings["heading"]).select(own="variant")
    whole = pl.when(pl.col("title_key") == "x", pl.col("variant").str.contains(_HEADING_VARIANT)).then("variant")
    concert = pl.when(pl.col("own").str.contains(_CONCERT_VARIANT)).then("own")
    found = headings.hstack(behind.hstack(own).select(named=pl.coalesce(whole, concert))).drop_nulls()
    rows = rows.join(found, on="heading", how="left", maintain_order="left")
    return rows.with_columns(variant=pl.when(pl.col("variant") == "").then(pl.coalesce("named", "variant")).otherwise("variant")).drop(
        "version"
    )


def _read_mixed_rows(rows: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Read the rows again whose title holds more than a title, and add `title_names` and `readings`."""
    keys = names.select(leading=number_name(), credit_key="name_key")
    # The name as delivered, and not the artist that it leads to: another record must not change the reading of this one.
    credited = rows.with_columns(leading=pl.col("credit_names").list.first()).join(keys, on="leading", how="left", maintain_order="left")
    mixed = read_mixed_fields(credited.with_columns(pl.col("credit_key").fill_null("")))
    none = {"title_names": pl.List(pl.String), "readings": pl.List(pl.UInt64)}
    rows = rows.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in none.items())
    if mixed.is_empty():
        return rows
    return rows.update(mixed.with_columns(read_titles(mixed["shown"])), on="row", how="left", include_nulls=False)


def add_artist_hash(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of NORMAL_SCHEMA; `rows` may lack `artist_hash` alone. Without a credited artist, the one that the title names leads."""
    is_named = (pl.col("artist_key") == "") & pl.col("title_names").is_not_null()
    rows = rows.with_columns(
        artist_key=pl.when(is_named).then(pl.col("title_names").list.first()).otherwise("artist_key"),
        names=pl.when(is_named).then(pl.col("title_names").list.sort()).otherwise("names"),
    )
    # Without the stand-in, all records without an artist would fall into one bucket.
    rows = rows.with_columns(hashed=pl.when(pl.col("artist_key") == "").then(choose_stand_in_artist()).otherwise("artist_key"))
    rows = rows.join(hash_texts(rows["hashed"], "hashed", "artist_hash"), on="hashed", how="left", maintain_order="left")
    return rows.select(pl.col(name).cast(dtype) for name, dtype in NORMAL_SCHEMA.items())


def _find_distinct(texts: pl.Series) -> tuple[Places, Places]:
    """Return the first place of each distinct text, and for each text its place among those. Hashes sort faster than texts join."""
    hashes = texts.hash()
    order = hashes.arg_sort().to_numpy()
    starts = find_run_starts(hashes.to_numpy()[order])
    first, inverse = order[starts], np.empty(len(texts), dtype=np.int64)
    inverse[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(texts)))
    if not texts.gather(first[inverse]).equals(texts):  # two texts share a hash
        first = inverse = np.arange(len(texts))
    return first, inverse


def collect_names(records: pl.DataFrame, artists: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the distinct names credited on records, and the names of artists, for `credits.build_name_table`: name, has_id."""
    listed = records["artists"].explode(empty_as_null=False).drop_nulls().struct
    found = pl.DataFrame({"name": listed.field("name"), "has_id": listed.field("artist_id").is_not_null()}).unique()
    shown = records.filter(pl.col("artists").list.len() == 0).select(name="artist_credit", has_id=pl.lit(value=False)).unique()
    own = [] if artists is None else [artists.select("name", has_id=pl.lit(value=True))]
    return pl.concat([found, shown, *own]).drop_nulls("name")


def _add_flags(variant: pl.Expr, remixer: pl.Expr, traits: pl.Expr, duration_ms: pl.Expr) -> pl.Expr:
    """Return the variant with the remixer of the platform's own field after a bare `Remix`, and with flags that tell recordings apart.

    These are karaoke and, without a length, live. With a length `live` does not count: platforms flag live albums whose titles no other
    platform marks, and the length distinguishes their tracks from studio takes.
    """
    # `${1}` and `${2}` put the neighbouring flags back: `live+remix` becomes `live+remix:<name>`.
    named = pl.when((remixer != "") & variant.str.contains(r"(?:^|\+)remix(?:$|\+)")).then(
        variant.str.replace(r"(^|\+)remix($|\+)", pl.concat_str(pl.lit("${1}remix:"), remixer, pl.lit("${2}")))
    )
    variant = named.otherwise(variant)
    hidden = traits.list.contains("karaoke").fill_null(value=False) & ~variant.str.contains("karaoke")
    variant = pl.when(hidden).then(pl.concat_str(variant, pl.lit("+karaoke")).str.strip_chars_start("+")).otherwise(variant)
    is_live = traits.list.contains("live").fill_null(value=False) & duration_ms.is_null() & (variant == "")
    return pl.when(is_live).then(pl.lit("live")).otherwise(variant)


def hash_texts(texts: pl.Series, key: str, name: str) -> pl.DataFrame:
    """Return distinct texts with a CRC-32, which no engine or version can change: columns `key`, `name`."""
    distinct = texts.unique()
    return pl.DataFrame({key: distinct, name: pl.Series([zlib.crc32(text.encode()) for text in distinct], dtype=pl.UInt32)})


def hash_bucket(buckets: int, hashed: str = "artist_hash") -> pl.Expr:
    """Return the bucket 0..buckets-1 of a column of 32-bit hashes: ranges of the hash, as in `atoms.compute_bucket_range`."""
    # The upper 16 bits are those in the id of an atom (atoms.BUCKET_BITS), and their product with the buckets fits into
    # 32.
    return (pl.col(hashed) // (1 << 16) * buckets // (1 << 16)).cast(pl.UInt32)
