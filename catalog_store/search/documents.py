"""One row per document from the tables: its names as keys, ready for the index.

A document has two texts (layout.py): the keys of its artists and the key of its title. Featured artists come from the credits. Keys are
built once per distinct name. Arrays and hashes belong in search_build.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.name_keys import build_name_key_expr, build_title_keys_frame
from catalog_store.search.layout import FIELD_SEPARATOR, NAME_SEPARATOR
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def rank_by_popularity(tables: Mapping[str, Path]) -> pl.DataFrame:
    """Return [recording_id, popularity] of all recordings in document order."""
    # Cast before the sort: popularity.npy holds float32, and recordings that are equal there must be in order of their ids. Otherwise the
    # order of the answers would differ from the document order.
    recordings = scan_table(TABLES["recording"], tables["recording"]).select("recording_id", pl.col("popularity").cast(pl.Float32))
    return recordings.collect().sort("popularity", "recording_id", descending=[True, False])


def read_names(tables: Mapping[str, Path], first_id: int, last_id: int) -> pl.DataFrame:
    """Return [recording_id, artists, title] of all recordings from `first_id` to `last_id`, by id."""
    chosen = pl.col("recording_id").is_between(first_id, last_id)
    recordings = scan_table(TABLES["recording"], tables["recording"]).filter(chosen).select("recording_id", "title", "variant").collect()
    credits_ = (
        scan_table(TABLES["recording_artist"], tables["recording_artist"])
        .filter(chosen)
        .select("recording_id", "position", "name", "credited_as", "is_primary")
        .collect()
        .sort("recording_id", "position")
    )
    # An artist credited under another name is found by both names. Its own name counts as a guest's, so the credit ranks first.
    own = credits_.filter(pl.col("credited_as").is_not_null()).with_columns(is_primary=pl.lit(value=False))
    credits_ = pl.concat([credits_.with_columns(name=pl.coalesce("credited_as", "name")), own])
    keyed = credits_.join(_key_artists(credits_["name"]), on="name", how="left", maintain_order="left")
    artists = keyed.group_by("recording_id", maintain_order=True).agg(
        pl.concat_str(
            pl.col("key").filter("is_primary").str.join(NAME_SEPARATOR),
            pl.col("key").filter(~pl.col("is_primary")).str.join(NAME_SEPARATOR),
            separator=FIELD_SEPARATOR,
        ).alias("artists")
    )
    titled = recordings.join(_key_titles(recordings["title"]), on="title", how="left", maintain_order="left")
    return titled.join(artists, on="recording_id", how="left", maintain_order="left").select(
        "recording_id",
        pl.col("artists").fill_null(FIELD_SEPARATOR),
        title=pl.concat_str("core", "variant", separator=FIELD_SEPARATOR),
    )


def _key_artists(names: pl.Series) -> pl.DataFrame:
    distinct = pl.DataFrame({"name": names.unique()})
    # The separator inside a name would split it into two artists.
    return distinct.with_columns(key=build_name_key_expr(pl.col("name")).str.replace_all(NAME_SEPARATOR, " ", literal=True))


def _key_titles(titles: pl.Series) -> pl.DataFrame:
    distinct = titles.unique()
    return pl.DataFrame({"title": distinct, "core": build_title_keys_frame(distinct)["core"]})
