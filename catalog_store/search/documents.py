"""One row per document from the tables: its names as keys, ready for the index.

A document has two texts (layout.py): the keys of its artists and those of its titles. Featured artists come from the credits and from the
title, which may name guests and remixers. Other names of main artists (other_names.py), and other titles, are beside them. Keys are built
once per distinct name. Arrays and hashes belong in search_build.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.name_keys import build_title_keys_frame, fold
from catalog_store.name_keys.japanese_readings import HAN, read_japanese
from catalog_store.record_keys.row_digests import DIGEST, digest_rows
from catalog_store.remembered_texts import read_anew
from catalog_store.search.extra_words import SOUND, build_reading_key, build_sounds
from catalog_store.search.layout import FIELD_SEPARATOR, NAME_SEPARATOR, ROLES
from catalog_store.search.other_names import key_artists
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from catalog_store.remembered_texts import Recall
    from catalog_store.search.other_names import OtherNames


MOST_TITLES = 3
"""Other titles of a recording that find it: those of the recording before those of its work, then those with most new letters."""
_TITLE_KINDS = ("recording", "parallel", "work")
_REMIXED = frozenset({"remix", "edit"})
"""Kinds of variants whose name is that of a remixer."""
_PARALLEL = " = "
"""Between a title and its translation, as catalog_a writes them."""


class NameRows(NamedTuple):
    """The rows that the names of some recordings are built from, by id."""

    recordings: pl.DataFrame
    """recording_id, title, variant."""
    credits_: pl.DataFrame
    """recording_id, position, artist_id, name, credited_as, is_primary."""
    titles: pl.DataFrame
    """recording_id, alias, kind."""


def read_rows(tables: Mapping[str, Path], chosen: pl.Expr) -> NameRows:
    """Read the rows of the recordings that are `chosen`."""
    recordings = scan_table(TABLES["recording"], tables["recording"]).filter(chosen).select("recording_id", "title", "variant").collect()
    credits_ = (
        scan_table(TABLES["recording_artist"], tables["recording_artist"])
        .filter(chosen)
        .select("recording_id", "position", "artist_id", "name", "credited_as", "is_primary")
        .collect()
        .sort("recording_id", "position")
    )
    return NameRows(recordings, credits_, _read_other_titles(tables, chosen))


def digest_rows_of_names(rows: NameRows, other: OtherNames, seed: int) -> pl.DataFrame:
    """Return recording_id, digest: over the rows and aliases that the names of each recording are built from, never 0."""
    credited = rows.credits_.join(other.digests, on="artist_id", how="left")
    # Only those of main artists are names of the recording.
    credited = credited.with_columns(aliases=pl.when("is_primary").then("aliases"))
    digests = digest_rows({"recording": rows.recordings, "credits": credited, "titles": rows.titles}, "recording_id", seed)
    return digests.join(rows.recordings, on="recording_id", how="semi").with_columns(pl.col(DIGEST).clip(lower_bound=1))


def build_names(rows: NameRows, other: OtherNames, recall: Recall = read_anew) -> pl.DataFrame:
    """Return [recording_id, artists, title, sounds] of the recordings of `rows`.

    `sounds` are words for the sound of a title in another script, with digits in a word, or with Chinese characters read as Japanese.
    `recall` is called with distinct texts and the function of their keys, and may remember the keys of texts that it has seen.
    """
    recordings, credits_, others = rows
    credits_ = credits_.with_columns(role=pl.when("is_primary").then(pl.lit("primary")).otherwise(pl.lit("featured"))).drop("is_primary")
    # An artist credited under another name is found by both names. Its own name counts as another name, so the credit ranks first.
    own = credits_.filter(pl.col("credited_as").is_not_null()).with_columns(role=_name_other())
    credits_ = pl.concat([credits_.with_columns(name=pl.coalesce("credited_as", "name")), own])
    keyed = credits_.join(key_artists(credits_["name"]), on="name", how="left", maintain_order="left")
    keyed = pl.concat([keyed.select("recording_id", "artist_id", "key", "role"), _find_persons(keyed, other.persons)])
    keyed = _add_aliases(keyed, other.aliases)
    # Grouped apart: a filter within the groups takes five times as long.
    sides = [
        keyed.filter(role=side).group_by("recording_id", maintain_order=True).agg(pl.col("key").str.join(NAME_SEPARATOR).alias(side))
        for side in ROLES
    ]
    keys = recall(pl.concat([recordings["title"], others["alias"]]).unique().alias("title").to_frame(), _key_titles)
    named = _add_other_titles(recordings.join(keys, on="title", how="left", maintain_order="left"), others, keys)
    for side in sides:
        named = named.join(side, on="recording_id", how="left", maintain_order="left")
    named = _add_named_in_titles(named)
    return named.select(
        "recording_id",
        "sounds",
        artists=pl.concat_str(pl.col(ROLES).fill_null(""), separator=FIELD_SEPARATOR),
        # Null values are left out of the text: nearly all recordings have one title.
        title=pl.concat_str("core", "variant", "others", separator=FIELD_SEPARATOR, ignore_nulls=True),
    )


def _name_other() -> pl.Expr:
    return pl.when(pl.col("role") == "primary").then(pl.lit("alias")).otherwise("role")


def _read_other_titles(tables: Mapping[str, Path], chosen: pl.Expr) -> pl.DataFrame:
    """Return [recording_id, alias, kind] of the recordings that are `chosen`."""
    if "recording_alias" not in tables:
        return pl.DataFrame(schema={"recording_id": pl.Int64, "alias": pl.String, "kind": pl.String})
    rows = scan_table(TABLES["recording_alias"], tables["recording_alias"]).filter(chosen)
    return rows.select("recording_id", "alias", "kind").collect().unique()


def _add_other_titles(named: pl.DataFrame, others: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """Add the column `others`, the keys of other titles in one text, and the sounds of those titles."""
    own = named.select("recording_id", own="core", own_sounds="sounds")
    found = others.join(keys.rename({"title": "alias"}), on="alias").join(own, on="recording_id")
    found = found.with_columns(pl.col("core").str.replace_all(NAME_SEPARATOR, " ", literal=True)).filter(pl.col("core") != "")
    found = found.filter(_join_words("core") != _join_words("own"))
    new = pl.col("core").str.split(" ").list.set_difference(pl.col("own").str.split(" ")).list.join("").str.len_chars().cast(pl.Int64)
    found = found.with_columns(rank=pl.col("kind").replace_strict(_TITLE_KINDS, range(len(_TITLE_KINDS))), new=-new)
    best = found.sort("recording_id", "rank", "new", "core").unique(["recording_id", "core"], keep="first", maintain_order=True)
    best = best.filter(pl.int_range(pl.len()).over("recording_id") < MOST_TITLES)
    joined = best.group_by("recording_id", maintain_order=True).agg(
        others=pl.col("core").str.join(NAME_SEPARATOR), more=pl.col("sounds").list.explode(keep_nulls=False, empty_as_null=False)
    )
    named = named.join(joined, on="recording_id", how="left", maintain_order="left")
    more = pl.col("more").fill_null([])
    return named.with_columns(sounds=pl.col("sounds").list.concat(more).list.unique(maintain_order=True)).drop("more")


def _join_words(key: str) -> pl.Expr:
    return pl.col(key).str.replace_all(" ", "", literal=True)


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


def _find_persons(credits_: pl.DataFrame, persons: pl.DataFrame) -> pl.DataFrame:
    """Return the readings of main artists with Japanese names as other names."""
    found = credits_.filter(role="primary").drop("key").join(persons, on="name", maintain_order="left")
    return found.select("recording_id", "artist_id", "key", role=pl.lit("alias"))


def _add_aliases(credits_: pl.DataFrame, aliases: pl.DataFrame) -> pl.DataFrame:
    """Return the credits, and the other names of main artists."""
    main = credits_.filter(role="primary").select("recording_id", "artist_id").unique(maintain_order=True)
    found = main.join(aliases, on="artist_id", maintain_order="left_right").with_columns(role=pl.lit("alias"))
    return pl.concat([credits_, found.select(credits_.columns)])


def _key_titles(titles: pl.DataFrame) -> pl.DataFrame:
    keyed = titles.with_columns(build_title_keys_frame(titles["title"]).select("core", guests="credits"))
    written = titles.filter(pl.col("title").str.contains(HAN)).with_columns(part=pl.col("title").str.split(_PARALLEL)).explode("part")
    readings = [build_reading_key(fold(read_japanese(part))) for part in written["part"]]
    read = written.select("title", word=SOUND + pl.Series(readings, dtype=pl.String)).filter(pl.col("word") != SOUND)
    found = pl.concat([build_sounds(keyed.select("title", "core"), "core"), read])
    sounds = found.group_by("title").agg(sounds=pl.col("word").unique(maintain_order=True))
    return keyed.join(sounds, on="title", how="left", maintain_order="left").with_columns(pl.col("sounds").fill_null([]))
