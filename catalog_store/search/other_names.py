"""Other names under which a search finds an artist's recordings: names that platforms list, and readings of Japanese names.

They depend on all recordings of an artist, so they are chosen once for all blocks of documents (documents.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import polars as pl

from catalog_store.folder_listing import list_folder
from catalog_store.name_keys import build_name_key, build_name_key_expr
from catalog_store.name_keys.japanese_readings import HAN, read_japanese_person
from catalog_store.record_keys.numbers import hash_columns
from catalog_store.remembered_texts import read_anew
from catalog_store.search.layout import NAME_SEPARATOR
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts, scan_table
from catalog_store.tables.recordings import LISTED_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.remembered_texts import TextMemory

MOST_ALIASES = 3
"""Other names of a main artist that find its recordings: those that most platforms list. Each name costs pairs of words in the index."""
ARTISTS_PER_RANGE = 100_000
"""Artists whose other names are chosen at once: some 30 MB."""
_REMEMBERED = "search-persons"
_IS_LISTED = pl.col("kind").is_in(LISTED_KINDS)
_NO_ALIASES = pl.DataFrame(schema={"artist_id": pl.Int64, "key": pl.String})


class OtherNames(NamedTuple):
    """The other names of some artists."""

    aliases: pl.DataFrame
    """artist_id, key: the aliases of an artist, the best first."""
    persons: pl.DataFrame
    """name, key: readings of the shown names of main artists."""

    @classmethod
    def read(cls, folder: Path, credits_: pl.DataFrame) -> Self:
        """Read what `write_other_names` wrote of the main artists of `credits_` [artist_id, name, credited_as, is_primary]."""
        main = credits_.filter("is_primary")
        shown = {"aliases": main["artist_id"], "persons": main.select(pl.coalesce("credited_as", "name")).to_series()}
        found = (
            pl.scan_parquet(list_folder(folder, f"other-{name}-*.parquet")).filter(pl.first().is_in(wanted.unique().implode())).collect()
            for name, wanted in shown.items()
        )
        return cls(*found)

    @property
    def digests(self) -> pl.DataFrame:
        """artist_id, aliases: a digest of the aliases of each artist that has any."""
        joined = self.aliases.group_by("artist_id", maintain_order=True).agg(pl.col("key").str.join(NAME_SEPARATOR))
        return joined.select("artist_id", aliases=hash_columns(["key"]))


def write_other_names(tables: Mapping[str, Path], folder: Path, texts: TextMemory | None = None) -> None:
    """Choose the other names of all artists, and write them into `folder` for the processes that build names.

    `texts` remembers readings for the next build. Memory: the credits of a part of the table, or the names of a range of artists; and the
    distinct names with Chinese characters.
    """
    has_alias = _mark_listed(tables)
    written = pl.DataFrame(schema={"name": pl.String})
    for number, shown in enumerate(_read_shown(tables)):
        written = pl.concat([written, shown.filter(pl.col("is_primary") & pl.col("name").str.contains(HAN)).select("name")]).unique()
        listed = shown.filter(pl.Series(has_alias.take(shown["artist_id"].to_numpy(), mode="clip")))
        for (part,), rows in listed.group_by(pl.col("artist_id") // ARTISTS_PER_RANGE):
            rows.write_ipc(folder / f"shown-{part:06d}-{number:06d}.arrow")
    recall = partial(texts.recall, _REMEMBERED) if texts else read_anew
    persons = recall(written.sort("name"), _key_persons).filter(pl.col("key") != "")
    persons.write_parquet(folder / "other-persons-000000.parquet", compression="lz4")
    _NO_ALIASES.write_parquet(folder / "other-aliases-000000.parquet")
    for part in range(len(has_alias) // ARTISTS_PER_RANGE + 1):
        files = list_folder(folder, f"shown-{part:06d}-*.arrow")
        if files:
            shown = pl.concat([pl.read_ipc(file) for file in files]).unique()
            aliases = _choose_aliases(_read_listed(tables, part), shown, persons)
            aliases.write_parquet(folder / f"other-aliases-{part + 1:06d}.parquet", compression="lz4")
        for file in files:
            file.unlink()


def key_artists(names: pl.Series) -> pl.DataFrame:
    """Return [name, key] of the distinct names."""
    distinct = pl.DataFrame({"name": names.unique()})
    # The separator inside a name would split it into two artists.
    return distinct.with_columns(key=build_name_key_expr(pl.col("name")).str.replace_all(NAME_SEPARATOR, " ", literal=True))


def _mark_listed(tables: Mapping[str, Path]) -> NDArray[np.bool_]:
    """Return by artist id whether a platform lists other names of the artist; the last entry is that of nobody."""
    marks = np.zeros(1, dtype=np.bool_)
    if "artist_alias" in tables:
        ids = scan_table(TABLES["artist_alias"], tables["artist_alias"]).filter(_IS_LISTED).select("artist_id").collect().to_series()
        marks = np.zeros(int(ids.to_numpy().max(initial=0)) + 2, dtype=np.bool_)
        marks[ids.to_numpy()] = True
    return marks


def _read_listed(tables: Mapping[str, Path], part: int) -> pl.DataFrame:
    """Return [artist_id, platform, name] of the names that platforms list of a range of artists."""
    known = scan_table(TABLES["artist_alias"], tables["artist_alias"]).filter(_IS_LISTED)
    inside = pl.col("artist_id").is_between(part * ARTISTS_PER_RANGE, (part + 1) * ARTISTS_PER_RANGE, closed="left")
    return known.filter(inside).select("artist_id", "platform", name="alias").collect()


def _read_shown(tables: Mapping[str, Path]) -> Iterator[pl.DataFrame]:
    """Yield [artist_id, name, is_primary]: the distinct names under which recordings credit artists, part by part of the table."""
    for part in list_parts(tables["recording_artist"]):
        rows = pl.read_parquet(part, columns=["artist_id", "name", "credited_as", "is_primary"])
        # An artist who is credited under another name is found by its own name, too.
        own = rows.filter(pl.col("credited_as").is_not_null()).select("artist_id", "name", is_primary=False)
        yield pl.concat([rows.select("artist_id", pl.coalesce("credited_as", "name").alias("name"), "is_primary"), own]).unique()


def _key_persons(names: pl.DataFrame) -> pl.DataFrame:
    return names.with_columns(key=pl.Series([build_name_key(read_japanese_person(name)) for name in names["name"]], dtype=pl.String))


def _choose_aliases(listed: pl.DataFrame, shown: pl.DataFrame, persons: pl.DataFrame) -> pl.DataFrame:
    """Return [artist_id, key] of the artists of `listed` [artist_id, platform, name] whose names `shown` are those of main artists."""
    listed = listed.join(shown.filter("is_primary").select("artist_id").unique(), on="artist_id", how="semi")
    keyed = listed.join(key_artists(listed["name"]), on="name").filter(pl.col("key") != "")
    counted = keyed.group_by("artist_id", "key").agg(platforms=pl.col("platform").n_unique())
    named = _key_shown(shown.join(listed, on="artist_id", how="semi"), persons)
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


def _key_shown(shown: pl.DataFrame, persons: pl.DataFrame) -> pl.DataFrame:
    """Return [artist_id, words] of the artists in `shown`: the words of all names that recordings show or that are read for them."""
    names = shown.select("artist_id", "name").unique()
    keyed = names.join(key_artists(names["name"]), on="name").select("artist_id", "key")
    read = shown.filter("is_primary").join(persons, on="name").select("artist_id", "key")
    return pl.concat([keyed, read]).select("artist_id", words=_sort_words()).unique()


def _sort_words() -> pl.Expr:
    return pl.col("key").str.split(" ").list.sort().list.join(" ")
