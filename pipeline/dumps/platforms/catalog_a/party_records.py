"""Artists and labels out of one block of records, staged as `source_artist` and `source_legal_name`, or as `source_label`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.platforms.catalog_a.batch import Batch, select_sound_records
from pipeline.dumps.platforms.catalog_a.names import PLACEHOLDER_ARTISTS, PLACEHOLDER_LABELS, is_placeholder_label, read_known_id
from pipeline.dumps.platforms.catalog_a.xml_extraction import extract, list_items

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_a.xml_blocks import Block

ARTIST_VALUES = ("artist_id", "name", "is_retired", "legal_name", "variations")
LABEL_VALUES = ("label_id", "name", "is_retired", "parent_label_id")
"""Columns of the stylesheets' sections. `is_retired`: the profile says `DO NOT USE`."""
_SEVERAL_PERSONS = r"[&/;+,\n]|(?i)\b(?:and|with|et|und)\b"
"""In the legal name of a duo that lists no members: a search for one of them must not find it as that person."""


def read_artists(source_file: str, block: Block) -> Batch:
    """Return the batch of a block of `<artist>` records."""
    extraction = extract(block, (ARTIST_VALUES,))
    batch = Batch(source_file)
    batch.reject_broken("source_artist", extraction.broken)
    artists = select_sound_records(extraction.frames[0], "source_artist", "artist_id", "name", extraction, batch)
    variations = list_items(artists.select("owner", "variations"), "variations", ("alias",)).filter(pl.col("alias").str.strip_chars() != "")
    aliases = variations.group_by("owner", maintain_order=True).agg(aliases=pl.col("alias").unique(maintain_order=True))
    is_placeholder = pl.col("artist_id").is_in(list(PLACEHOLDER_ARTISTS)) | (pl.col("is_retired") == "true")
    batch.frames["source_artist"] = artists.join(aliases, on="owner", how="left", maintain_order="left").select(
        "place",
        "artist_id",
        "name",
        pl.col("aliases").fill_null([]),
        is_placeholder=is_placeholder,
    )
    legal = artists.filter(~is_placeholder).select("place", "artist_id", name=pl.col("legal_name").str.strip_chars())
    legal = legal.filter(pl.col("name") != "", ~pl.col("name").str.contains(_SEVERAL_PERSONS))
    batch.frames["source_legal_name"], batch.read["source_legal_name"] = legal, legal.height
    return batch


def read_labels(source_file: str, block: Block) -> Batch:
    """Return the batch of a block of `<label>` records."""
    extraction = extract(block, (LABEL_VALUES,))
    batch = Batch(source_file)
    batch.reject_broken("source_label", extraction.broken)
    labels = select_sound_records(extraction.frames[0], "source_label", "label_id", "name", extraction, batch)
    batch.frames["source_label"] = labels.select(
        "place",
        "label_id",
        "name",
        parent_label_id=read_known_id(pl.col("parent_label_id")),
        is_placeholder=is_placeholder_label(pl.col("label_id"), pl.col("name")) | (pl.col("is_retired") == "true"),
    )
    return batch


def build_absent_placeholders(entity: str, seen: pl.Series) -> pl.DataFrame:
    """Return rows of `entity` for placeholders that releases refer to and the file lacks (the artist file always does)."""
    key, known = ("artist_id", PLACEHOLDER_ARTISTS) if entity == "source_artist" else ("label_id", PLACEHOLDER_LABELS)
    # Releases refer to artist 194 (Various), and the artist file lacks it: names would be lost otherwise.
    missing = [(number, name) for number, name in known.items() if number not in set(seen)]
    frame = pl.DataFrame(missing, schema={key: pl.String, "name": pl.String}, orient="row").with_columns(is_placeholder=pl.lit(True))
    if entity == "source_artist":
        frame = frame.with_columns(aliases=pl.lit([], dtype=pl.List(pl.String)))
    return frame
