"""Other names under which a search finds an artist's recordings: names that platforms list, and readings of Japanese names.

They depend on all recordings of an artist, so they are chosen once for all blocks of documents (documents.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import polars as pl

from catalog_store.name_keys import build_name_key, build_name_key_expr
from catalog_store.name_keys.japanese_readings import HAN, read_japanese_person
from catalog_store.record_keys.numbers import hash_columns
from catalog_store.remembered_texts import read_anew
from catalog_store.search.layout import NAME_SEPARATOR
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table
from catalog_store.tables.recordings import LISTED_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from catalog_store.remembered_texts import TextMemory

MOST_ALIASES = 3
"""Other names of a main artist that find its recordings: those that most platforms list. Each name costs pairs of words in the index."""
_REMEMBERED = "search-persons"


class OtherNames(NamedTuple):
    """The other names of all artists."""

    aliases: pl.DataFrame
    """artist_id, key: the aliases of an artist, the best first."""
    persons: pl.DataFrame
    """name, key: readings of the shown names of main artists."""
    digests: pl.DataFrame
    """artist_id, aliases: a digest of the aliases of each artist that has any."""

    @classmethod
    def choose(cls, tables: Mapping[str, Path], texts: TextMemory | None = None) -> Self:
        """Choose the names. `texts` remembers readings for the next build."""
        shown = _read_shown(tables)
        written = shown.filter("is_primary").select("name").unique().filter(pl.col("name").str.contains(HAN)).sort("name")
        recall = partial(texts.recall, _REMEMBERED) if texts else read_anew
        persons = recall(written, _key_persons).filter(pl.col("key") != "")
        aliases = _choose_aliases(tables, shown, persons)
        joined = aliases.group_by("artist_id", maintain_order=True).agg(pl.col("key").str.join(NAME_SEPARATOR))
        return cls(aliases, persons, joined.select("artist_id", aliases=hash_columns(["key"])))

    def write(self, folder: Path) -> None:
        """Write the frames into a folder, for the processes that build names."""
        for name, rows in self._asdict().items():
            rows.write_ipc(folder / f"other-{name}.arrow")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote."""
        return cls(*(pl.read_ipc(folder / f"other-{name}.arrow") for name in cls._fields))


def key_artists(names: pl.Series) -> pl.DataFrame:
    """Return [name, key] of the distinct names."""
    distinct = pl.DataFrame({"name": names.unique()})
    # The separator inside a name would split it into two artists.
    return distinct.with_columns(key=build_name_key_expr(pl.col("name")).str.replace_all(NAME_SEPARATOR, " ", literal=True))


def _read_shown(tables: Mapping[str, Path]) -> pl.DataFrame:
    """Return [artist_id, name, is_primary]: the distinct names under which recordings credit artists."""
    credited = scan_table(TABLES["recording_artist"], tables["recording_artist"])
    return credited.select("artist_id", "is_primary", name=pl.coalesce("credited_as", "name")).unique().collect()


def _key_persons(names: pl.DataFrame) -> pl.DataFrame:
    return names.with_columns(key=pl.Series([build_name_key(read_japanese_person(name)) for name in names["name"]], dtype=pl.String))


def _choose_aliases(tables: Mapping[str, Path], shown: pl.DataFrame, persons: pl.DataFrame) -> pl.DataFrame:
    if "artist_alias" not in tables:
        return pl.DataFrame(schema={"artist_id": pl.Int64, "key": pl.String})
    known = scan_table(TABLES["artist_alias"], tables["artist_alias"]).filter(pl.col("kind").is_in(LISTED_KINDS))
    main = shown.filter("is_primary").select("artist_id").unique()
    listed = known.select("artist_id", "platform", name="alias").collect().join(main, on="artist_id", how="semi")
    keyed = listed.join(key_artists(listed["name"]), on="name").filter(pl.col("key") != "")
    counted = keyed.group_by("artist_id", "key").agg(platforms=pl.col("platform").n_unique())
    named = _key_shown(tables, shown.join(listed, on="artist_id", how="semi"), persons)
    # Only words count in a search: `Dylan, Bob` finds nothing that `Bob Dylan` does not find.
    other = counted.with_columns(words=_sort_words()).join(named, on=["artist_id", "words"], how="anti")
    # A legal name finds more than one more spelling of the name: `Joshua Winkelman` before `J. Wink`.
    spelled = named.group_by("artist_id").agg(known=pl.col("words").str.split(" ").list.explode(keep_nulls=False, empty_as_null=False))
    new = pl.col("words").str.split(" ").list.set_difference("known").list.join("").str.len_chars().cast(pl.Int64)
    other = other.join(spelled, on="artist_id", how="left").with_columns(new_letters=new).drop("known")
    best = other.sort("artist_id", -pl.col("platforms").cast(pl.Int64), -pl.col("new_letters"), "key").unique(
        ["artist_id", "words"], keep="first", maintain_order=True
    )
    return best.filter(pl.int_range(pl.len()).over("artist_id") < MOST_ALIASES).select("artist_id", "key")


def _key_shown(tables: Mapping[str, Path], shown: pl.DataFrame, persons: pl.DataFrame) -> pl.DataFrame:
    """Return [artist_id, words] of the artists in `shown`: the words of all names that recordings show or that are read for them."""
    # An artist who is credited under another name is found by its own name, too.
    own = scan_table(TABLES["recording_artist"], tables["recording_artist"]).filter(pl.col("credited_as").is_not_null())
    names = [shown.select("artist_id", "name"), own.select("artist_id", "name").collect().join(shown, on="artist_id", how="semi")]
    keyed = pl.concat(names).unique()
    keyed = keyed.join(key_artists(keyed["name"]), on="name").select("artist_id", "key")
    read = shown.filter("is_primary").join(persons, on="name").select("artist_id", "key")
    return pl.concat([keyed, read]).select("artist_id", words=_sort_words()).unique()


def _sort_words() -> pl.Expr:
    return pl.col("key").str.split(" ").list.sort().list.join(" ")
