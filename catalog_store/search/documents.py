"""One row per document from the tables: its names as keys, ready for the index.

A document has two texts (layout.py): the keys of its artists and the key of its title. Featured artists come from the credits and from the
title, which may name guests and remixers. Other names of main artists are beside them. Keys are built once per distinct name. Arrays and
hashes belong in search_build.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.name_keys import build_name_key, build_name_key_expr, build_title_keys_frame, fold
from catalog_store.name_keys.japanese_readings import HAN, read_japanese, read_japanese_person
from catalog_store.remembered_texts import read_anew
from catalog_store.search.extra_words import SOUND, build_reading_key, build_sounds
from catalog_store.search.layout import FIELD_SEPARATOR, NAME_SEPARATOR
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from catalog_store.remembered_texts import Recall


MOST_ALIASES = 3
"""Other names of a main artist that find its recordings: those that most platforms list. Each name costs pairs of words in the index."""
_ALIAS_KINDS = ("name", "alias", "sort_name")
_REMIXED = frozenset({"remix", "edit"})
"""Kinds of variants whose name is that of a remixer."""
_PARALLEL = " = "
"""Between a title and its translation, as catalog_a writes them."""


def read_names(tables: Mapping[str, Path], first_id: int, last_id: int, recall: Recall = read_anew) -> pl.DataFrame:
    """Return [recording_id, artists, title, sounds] of all recordings from `first_id` to `last_id`, by id.

    `sounds` are words for the sound of a title in another script, with digits in a word, or with Chinese characters read as Japanese.
    `recall` is called with distinct titles and the function of their keys, and may remember the keys of titles that it has seen.
    """
    chosen = pl.col("recording_id").is_between(first_id, last_id)
    recordings = scan_table(TABLES["recording"], tables["recording"]).filter(chosen).select("recording_id", "title", "variant").collect()
    credits_ = (
        scan_table(TABLES["recording_artist"], tables["recording_artist"])
        .filter(chosen)
        .select("recording_id", "position", "artist_id", "name", "credited_as", "is_primary")
        .collect()
        .sort("recording_id", "position")
    )
    # An artist credited under another name is found by both names. Its own name counts as a guest's, so the credit ranks first.
    own = credits_.filter(pl.col("credited_as").is_not_null()).with_columns(is_primary=pl.lit(value=False))
    credits_ = pl.concat([credits_.with_columns(name=pl.coalesce("credited_as", "name")), own])
    keyed = credits_.join(_key_artists(credits_["name"]), on="name", how="left", maintain_order="left")
    keyed = pl.concat([keyed.select("recording_id", "artist_id", "key", "is_primary"), _read_persons(keyed)])
    keyed = _add_aliases(tables, keyed)
    # Grouped apart: a filter within the groups takes five times as long.
    sides = [
        keyed.filter(is_of_side).group_by("recording_id", maintain_order=True).agg(pl.col("key").str.join(NAME_SEPARATOR).alias(side))
        for side, is_of_side in (("primary", pl.col("is_primary")), ("featured", ~pl.col("is_primary")))
    ]
    keys = recall(recordings.select(pl.col("title").unique()), _key_titles)
    named = recordings.join(keys, on="title", how="left", maintain_order="left")
    for side in sides:
        named = named.join(side, on="recording_id", how="left", maintain_order="left")
    named = _add_named_in_titles(named)
    return named.select(
        "recording_id",
        "sounds",
        artists=pl.concat_str(pl.col("primary", "featured").fill_null(""), separator=FIELD_SEPARATOR),
        title=pl.concat_str("core", "variant", separator=FIELD_SEPARATOR),
    )


def _add_named_in_titles(named: pl.DataFrame) -> pl.DataFrame:
    """Add guests and remixers that only the title names to `featured`."""
    added = [
        (recording, _list_new_names(f"{primary or ''}{NAME_SEPARATOR}{featured or ''}", guests, variant))
        for recording, primary, featured, guests, variant in named.filter(
            (pl.col("guests") != "") | pl.col("variant").str.contains(":", literal=True)
        )
        .select("recording_id", "primary", "featured", "guests", "variant")
        .iter_rows()
    ]
    new = pl.DataFrame([row for row in added if row[1]], schema={"recording_id": pl.Int64, "new": pl.String}, orient="row")
    joined = named.join(new, on="recording_id", how="left", maintain_order="left")
    # Null values are left out of the text.
    return joined.with_columns(featured=pl.concat_str("featured", "new", separator=NAME_SEPARATOR, ignore_nulls=True)).drop("new")


def _list_new_names(known: str, guests: str, variant: str) -> str:
    """Return the guests and remixers that are not among the `known` names, in one text."""
    compact = known.replace(" ", "")
    words = known.replace(NAME_SEPARATOR, " ").split(" ")
    found = [] if set(words).issuperset(guests.split(" ")) else [guests.replace(NAME_SEPARATOR, " ")]
    for tag in variant.split("+"):
        kind, _, name = tag.partition(":")
        if kind in _REMIXED and name and name not in compact:
            found.append(name)
    return NAME_SEPARATOR.join(found)


def _read_persons(credits_: pl.DataFrame) -> pl.DataFrame:
    """Return the readings of main artists with Japanese names as names of guests."""
    written = credits_.filter("is_primary").select("name").unique(maintain_order=True).filter(pl.col("name").str.contains(HAN))
    readings = pl.Series([build_name_key(read_japanese_person(name)) for name in written["name"]], dtype=pl.String)
    read = written.with_columns(key=readings).filter(pl.col("key") != "")
    found = (
        credits_.filter("is_primary").drop("key").join(read, on="name", maintain_order="left").with_columns(is_primary=pl.lit(value=False))
    )
    return found.select("recording_id", "artist_id", "key", "is_primary")


def _add_aliases(tables: Mapping[str, Path], credits_: pl.DataFrame) -> pl.DataFrame:
    """Return the credits, and the other names of main artists as those of guests, so that a credit ranks first."""
    if "artist_alias" not in tables:
        return credits_
    main = credits_.filter("is_primary").select("recording_id", "artist_id").unique(maintain_order=True)
    wanted = main.select("artist_id").unique().lazy()
    known = scan_table(TABLES["artist_alias"], tables["artist_alias"]).filter(pl.col("kind").is_in(_ALIAS_KINDS))
    listed = known.join(wanted, on="artist_id", how="semi").select("artist_id", "platform", name="alias").collect()
    if listed.is_empty():
        return credits_
    keyed = listed.join(_key_artists(listed["name"]), on="name").filter(pl.col("key") != "")
    counted = keyed.group_by("artist_id", "key").agg(platforms=pl.col("platform").n_unique())
    named = credits_.select("artist_id", words=_sort_words()).unique()
    # Only words count in a search: `Dylan, Bob` finds nothing that `Bob Dylan` does not find.
    other = counted.with_columns(words=_sort_words()).join(named, on=["artist_id", "words"], how="anti")
    # A legal name finds more than one more spelling of the name: `Joshua Winkelman` before `J. Wink`.
    spelled = named.group_by("artist_id").agg(known=pl.col("words").str.split(" ").list.explode(keep_nulls=False, empty_as_null=False))
    new = pl.col("words").str.split(" ").list.set_difference("known").list.join("").str.len_chars().cast(pl.Int64)
    other = other.join(spelled, on="artist_id", how="left").with_columns(new_letters=new).drop("known")
    best = other.sort("artist_id", -pl.col("platforms").cast(pl.Int64), -pl.col("new_letters"), "key").unique(
        ["artist_id", "words"], keep="first", maintain_order=True
    )
    best = best.filter(pl.int_range(pl.len()).over("artist_id") < MOST_ALIASES)
    found = main.join(best, on="artist_id", maintain_order="left_right").with_columns(is_primary=pl.lit(value=False))
    return pl.concat([credits_, found.select(credits_.columns)])


def _sort_words() -> pl.Expr:
    return pl.col("key").str.split(" ").list.sort().list.join(" ")


def _key_artists(names: pl.Series) -> pl.DataFrame:
    distinct = pl.DataFrame({"name": names.unique()})
    # The separator inside a name would split it into two artists.
    return distinct.with_columns(key=build_name_key_expr(pl.col("name")).str.replace_all(NAME_SEPARATOR, " ", literal=True))


def _key_titles(titles: pl.DataFrame) -> pl.DataFrame:
    keyed = titles.with_columns(build_title_keys_frame(titles["title"]).select("core", guests="credits"))
    written = titles.filter(pl.col("title").str.contains(HAN)).with_columns(part=pl.col("title").str.split(_PARALLEL)).explode("part")
    readings = [build_reading_key(fold(read_japanese(part))) for part in written["part"]]
    read = written.select("title", word=SOUND + pl.Series(readings, dtype=pl.String)).filter(pl.col("word") != SOUND)
    found = pl.concat([build_sounds(keyed.select("title", "core"), "core"), read])
    sounds = found.group_by("title").agg(sounds=pl.col("word").unique(maintain_order=True))
    return keyed.join(sounds, on="title", how="left", maintain_order="left").with_columns(pl.col("sounds").fill_null([]))
