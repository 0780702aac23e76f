"""Shapes between a layout and staging: values as delivered (text), and beside them the values that only the layout can read.

A column is absent from a frame when the layout does not know it; it is null then. `is_part`: the row is only a part of another record (the
album inside a track) and gives way to a record of the same id.
"""

from __future__ import annotations

import polars as pl

from pipeline.dumps.fields.delivered_credits import CREDITS

GENRES = pl.List(pl.Struct({"genre": pl.String, "genre_id": pl.String, "parent": pl.String}))
TEXTS = pl.List(pl.String)
_WHERE = {"position": pl.Int64(), "source_file": pl.String(), "place": pl.String(), "is_part": pl.Boolean()}

RECORDING = pl.Schema(
    {
        **_WHERE,
        "id": pl.String(),
        "title": pl.String(),
        "version": pl.String(),
        "kind": pl.String(),  # null for a sound recording, else what it is
        "artists": CREDITS,
        "artist_credit": pl.String(),
        "isrc": pl.String(),
        "duration": pl.String(),
        "duration_ms": pl.Int64(),
        "release_id": pl.String(),
        "release_date": pl.String(),
        "disc_number": pl.String(),
        "track_number": pl.String(),
        "is_explicit": pl.Boolean(),
        "traits": TEXTS,
        "popularity": pl.String(),
        "popularity_share": pl.Float64(),  # 0..1
        "slug": pl.String(),
        "genres": GENRES,
    }
)
RELEASE = pl.Schema(
    {
        **_WHERE,
        "id": pl.String(),
        "title": pl.String(),
        "version": pl.String(),
        "artists": CREDITS,
        "artist_credit": pl.String(),
        "label_id": pl.String(),
        "label_name": pl.String(),
        "catalog_number": pl.String(),
        "upc": pl.String(),
        "release_date": pl.String(),
        "release_type": pl.String(),
        "is_compilation": pl.Boolean(),
        "track_count": pl.String(),
        "slug": pl.String(),
        "genres": GENRES,
    }
)
ARTIST = pl.Schema({**_WHERE, "id": pl.String(), "title": pl.String(), "popularity": pl.String(), "popularity_share": pl.Float64()})
LABEL = pl.Schema({**_WHERE, "id": pl.String(), "title": pl.String()})
PLACEMENT = pl.Schema(
    {"position": pl.Int64(), "release_id": pl.String(), "id": pl.String(), "disc_number": pl.String(), "track_number": pl.String()}
)
"""Places of recordings on releases, where the release lists them and not the recording."""

SHAPES = {"recording": RECORDING, "release": RELEASE, "artist": ARTIST, "label": LABEL, "placement": PLACEMENT}


def conform(frame: pl.DataFrame, shape: pl.Schema) -> pl.DataFrame:
    """Return `frame` with exactly the columns of `shape`. Raises ValueError when it has others."""
    # A misspelled column would otherwise become null silently.
    unknown = set(frame.columns) - set(shape)
    if unknown:
        raise ValueError(f"columns {sorted(unknown)} are unknown to the shape: add them to record_shapes.py or leave them out")
    present = {
        "is_part": pl.lit(value=False),
        **{name: pl.col(name) for name in frame.columns},
    }
    return frame.select((present[name] if name in present else pl.lit(None)).cast(dtype).alias(name) for name, dtype in shape.items())
