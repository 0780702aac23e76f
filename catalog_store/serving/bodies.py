"""Tracks as they lie in `serving.sqlite`: encoded wire JSON made column by column, then zstd with one dictionary for all.

The shape of the JSON is the /v1 contract's (B1, B5, B6, A14). Add a field here when the contract grows one; readers hand the bytes on
as they are. What must not live here: SQL and files.
"""

from __future__ import annotations

import polars as pl
import zstandard

from catalog_store.platforms import LINK_SOURCES

DICTIONARY_BYTES = 64 * 1024
"""Larger ones gain less than 2 % and cost cache misses on every lookup."""
SAMPLES = 8_192
LEVEL = 6
_TRAINABLE_BYTES = 10 * DICTIONARY_BYTES
"""zstd asks for about ten times the dictionary in samples; below that the samples themselves serve as dictionary."""


def wire_tracks(tracks: pl.DataFrame) -> pl.Series:
    """Rows of the `track` table -> one line of wire JSON each, in row order."""
    return tracks.select(
        pl.struct(
            id="recording_id",
            title="title",
            releases=pl.col("releases").list.eval(_release()),
            artists=pl.col("artists").list.eval(_artist()),
            isrc="isrc",
            duration="duration_seconds",
            genre="genres",
            subgenre="subgenres",
        ).struct.json_encode()
    ).to_series()


def _release() -> pl.Expr:
    field = pl.element().struct.field
    label = pl.struct(id=field("label_id"), name=field("label_name"))
    return pl.struct(
        id=field("release_id"),
        title=field("title"),
        artist=pl.struct(id=field("artist_id"), name=field("artist_name")),
        label=pl.when(field("label_id").is_not_null()).then(label),
        release_date=field("release_date"),
        release_date_precision=field("release_date_precision"),
    )


def _artist() -> pl.Expr:
    field = pl.element().struct.field
    return pl.struct(id=field("artist_id"), name=field("name"), is_primary=field("is_primary"), is_remixer=field("is_remixer"))


def companions(recordings: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """What goes with each track: `recordings` [recording_id, artist_credit], `links` rows of `platform_link`.

    Returns [recording_id, companion], one line of JSON per row of `recordings`, in their order. Links stand in platform order, ids of
    one platform shortest first (for numbers: oldest first).
    """
    rank = {source: position for position, source in enumerate(LINK_SOURCES)}
    triple = pl.concat_list("source", "external_id", "slug")
    linked = (
        links.sort(pl.col("source").replace_strict(rank), pl.col("external_id").str.len_bytes(), "external_id")
        .group_by("recording_id", maintain_order=True)
        .agg(triple.alias("links"))
    )
    return (
        recordings.select("recording_id", "artist_credit")
        .join(linked, on="recording_id", how="left", maintain_order="left")
        .select(
            "recording_id",
            companion=pl.struct(
                credit="artist_credit", links=pl.col("links").fill_null(pl.lit([], dtype=pl.List(pl.List(pl.String))))
            ).struct.json_encode(),
        )
    )


def lines(tracks: pl.DataFrame, companion: pl.DataFrame) -> list[bytes]:
    """Both lines of each row of `tracks`, as they are compressed."""
    wire = tracks.select("recording_id", wire=wire_tracks(tracks))
    both = wire.join(companion, on="recording_id", how="left", maintain_order="left")
    return [text.encode() for text in both.select(pl.concat_str("wire", "companion", separator="\n")).to_series()]


def train(samples: list[bytes]) -> bytes:
    """The dictionary for bodies that look like `samples`; the same samples give the same dictionary."""
    content = b"".join(samples)
    if len(content) < _TRAINABLE_BYTES:
        return content[-DICTIONARY_BYTES:] or b"no tracks"
    dictionary = zstandard.train_dictionary(DICTIONARY_BYTES, [*samples], k=1024, d=8, f=20, split_point=1.0, accel=1, steps=1, threads=0)
    return dictionary.as_bytes()


def compress(bodies: list[bytes], dictionary: bytes) -> list[bytes]:
    """One frame per body."""
    if not bodies:
        return []
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_dict_id=0, write_checksum=0, write_content_size=1
    )
    shared = zstandard.ZstdCompressionDict(dictionary)
    shared.precompute_compress(compression_params=parameters)
    frames = zstandard.ZstdCompressor(dict_data=shared, compression_params=parameters).multi_compress_to_buffer([*bodies], threads=1)
    return [frames[number].tobytes() for number in range(len(frames))]


def decompressor(dictionary: bytes) -> zstandard.ZstdDecompressor:
    """A decompressor of bodies; not to be shared between threads."""
    return zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(dictionary), format=zstandard.FORMAT_ZSTD1_MAGICLESS)
