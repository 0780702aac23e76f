"""Tracks and releases as stored in `serving/bodies/`: wire JSON encoded by column, condensed, then compressed by zstd with a dictionary.

The /v1 contract fixes the shape of the JSON (B1, B5, B6, B15, A14). Add a field here when the contract gains one: readers pass the bytes on
unchanged. SQL and files do not belong here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import zstandard

from catalog_store.platforms import LINK_SOURCES
from catalog_store.serving.fragments import RELEASE_FRAGMENTS, TRACK_FRAGMENTS, condense_expr
from catalog_store.serving.link_marks import encode_mark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DICTIONARY_BYTES = 256 * 1024
"""Half as much costs 4 % more bytes and saves 0.1 us per lookup."""
# Bodies that train the dictionary, evenly spread over the ids.
SAMPLES = 16_384
LEVEL = 5
"""The next level takes twice the time and saves 1 %."""
HEAD = '{"title":"'
"""The beginning of wire JSON without its id."""
TRACK_COLUMNS = ("recording_id", "title", "releases", "artists", "isrc", "duration_seconds", "genres", "subgenres")
RELEASE_COLUMNS = (
    "release_id", "title", "artist_id", "artist_name", "artist_credited_as", "label_id", "label_name", "release_date",
    "release_date_precision", "track_count", "release_type", "catalog_number", "gtin",
)  # fmt: skip
"""Columns of `track` and `release` that a body shows. The others, popularity above all, may change without a new body."""
_NO_OTHER_CREDIT = ',"credited_as":null'
"""Removed from stored text: the member exists only where a credit uses another name. JSON text never contains a bare quote, so the
replacement hits only the member."""
SLUG_MARK = "/"
"""The first character of a slug, which follows its link. Links begin with a digit, so the two differ."""
_TRAINABLE_SAMPLES = 1_000
"""zstd trains only on samples of many times the dictionary's size. With fewer samples than this, the samples themselves are the
dictionary."""


def encode_tracks(tracks: pl.DataFrame, companion: pl.DataFrame) -> list[bytes]:
    """Encode rows of the `track` table: both lines of each, condensed, in row order. `companion` comes from `encode_companions`."""
    wire = pl.struct(
        title="title",
        releases=pl.col("releases").list.eval(_build_release_expr()),
        artists=pl.col("artists").list.eval(_build_artist_expr()),
        isrc="isrc",
        duration="duration_seconds",
        genre="genres",
        subgenre="subgenres",
    ).struct.json_encode()
    both = tracks.select("recording_id", wire=_strip_head(wire, TRACK_FRAGMENTS)).join(
        companion, on="recording_id", how="left", maintain_order="left"
    )
    return _join_lines(both, "wire", "companion")


def _build_release_expr() -> pl.Expr:
    field = pl.element().struct.field
    return pl.struct(
        id=field("release_id"),
        title=field("title"),
        artist=pl.struct(id=field("artist_id"), name=field("artist_name"), credited_as=field("artist_credited_as")),
        label=_build_label_expr(field("label_id"), field("label_name")),
        release_date=field("release_date"),
        release_date_precision=field("release_date_precision"),
    )


def _build_artist_expr() -> pl.Expr:
    field = pl.element().struct.field
    return pl.struct(
        id=field("artist_id"),
        name=field("name"),
        is_primary=field("is_primary"),
        is_remixer=field("is_remixer"),
        credited_as=field("credited_as"),
    )


def _build_label_expr(identifier: pl.Expr, name: pl.Expr) -> pl.Expr:
    # A struct of nulls would be encoded as an object. The contract wants null.
    return pl.when(identifier.is_not_null()).then(pl.struct(id=identifier, name=name))


def encode_companions(recordings: pl.DataFrame, links: pl.DataFrame, isrcs: pl.DataFrame, works: pl.DataFrame) -> pl.DataFrame:
    """Encode the data beside each track from rows of `recording`, `platform_link`, `recording_isrc` and `work_recording`.

    Return [recording_id, companion] with one line of JSON per row of `recordings`, in their order. Links are in platform order, the ids of
    one platform shortest first (for numbers: oldest first). ISRCs other than the representative one, and ISWCs, are in their own order.
    """
    source = pl.col("source").replace_strict({source: encode_mark(source) for source in LINK_SOURCES})
    place = pl.col("source").replace_strict({source: place for place, source in enumerate(LINK_SOURCES)})
    # Tables are in order of ids. With the id first, the sort takes a third of the time.
    links = links.sort("recording_id", place, pl.col("external_id").str.len_bytes(), "external_id")
    slugs = links.with_row_index("row").filter(pl.col("slug").is_not_null()).select("row", "recording_id", text=SLUG_MARK + pl.col("slug"))
    links = links.with_row_index("row").select("row", "recording_id", text=source + pl.col("external_id"))
    lists = {
        # A stable sort: a slug follows its link.
        "links": pl.concat([links, slugs]).sort("row", maintain_order=True),
        "isrcs": isrcs.filter(~pl.col("is_representative")).sort("isrc").select("recording_id", text="isrc"),
        "works": works.sort("iswc").select("recording_id", text=pl.col("iswc").str.slice(1)),
    }
    found = recordings.select("recording_id", "artist_credit")
    for name, rows in lists.items():
        grouped = rows.group_by("recording_id", maintain_order=True).agg(pl.col("text").alias(name))
        found = found.join(grouped, on="recording_id", how="left", maintain_order="left").with_columns(pl.col(name).fill_null([]))
    return found.select("recording_id", companion=_encode_array(("artist_credit", *lists)))


def encode_releases(releases: pl.DataFrame, placements: pl.DataFrame) -> list[bytes]:
    """Encode rows of `release`: both lines of each, condensed, in row order; `placements` are rows of `recording_release`."""
    disc, number = pl.col("disc_number").cast(pl.Int64), pl.col("track_number").cast(pl.Int64)
    ordered = placements.sort("release_id", "disc_number", "track_number", "recording_id", nulls_last=True).with_row_index("row")
    place = pl.col("row") + 1 - pl.col("row").min().over("release_id")
    ordered = ordered.with_columns(is_plain=((disc == 1) & (number == place)).fill_null(value=False))
    listed = ordered.group_by("release_id", maintain_order=True).agg("recording_id", pl.col("is_plain").all())
    # Few releases name the places of their tracks.
    placed = ordered.join(listed.filter(~pl.col("is_plain")), on="release_id", how="semi", maintain_order="left")
    places = placed.group_by("release_id", maintain_order=True).agg(places=pl.concat_list(disc, number).explode())
    listed = listed.join(places, on="release_id", how="left", maintain_order="left")
    wire = pl.struct(
        title="title",
        artist=pl.struct(id="artist_id", name="artist_name", credited_as="artist_credited_as"),
        label=_build_label_expr(pl.col("label_id"), pl.col("label_name")),
        release_date="release_date",
        release_date_precision="release_date_precision",
        track_count="track_count",
    ).struct.json_encode()
    rest = _encode_array(("release_type", "catalog_number", "gtin", "recording_id", "places"))
    joined = releases.join(listed, on="release_id", how="left", maintain_order="left")
    filled = joined.with_columns(pl.col("recording_id", "places").fill_null([]))
    return _join_lines(filled.select(wire=_strip_head(wire, RELEASE_FRAGMENTS), rest=rest), "wire", "rest")


def _strip_head(wire: pl.Expr, fragments: Mapping[str, str]) -> pl.Expr:
    """Drop the id and HEAD, which readers put back: the id is the row's key and is not stored twice."""
    return condense_expr(wire.str.slice(len(HEAD)).str.replace_all(_NO_OTHER_CREDIT, "", literal=True), fragments)


def _encode_array(columns: Sequence[str]) -> pl.Expr:
    """Encode columns as a JSON array: names of members would cost ten bytes a row."""
    encoded: list[pl.Expr] = []
    for name in columns:
        # An object of one member, without the bytes around the value: `{"<name>":` and `}`.
        value = pl.struct(name).struct.json_encode().str.slice(len(name) + 4).str.head(-1)
        encoded += [pl.lit(","), value]
    return pl.concat_str(pl.lit("["), *encoded[1:], pl.lit("]"))


def _join_lines(rows: pl.DataFrame, *columns: str) -> list[bytes]:
    lines: list[bytes] = rows.select(pl.concat_str(*columns, separator="\n").cast(pl.Binary)).to_series().to_list()
    return lines


def train_dictionary(samples: Sequence[bytes]) -> bytes:
    """Train the dictionary for bodies like `samples`; the same samples give the same dictionary."""
    content = b"".join(samples)
    if len(samples) < _TRAINABLE_SAMPLES:
        # The dictionary is never empty: a catalog without tracks gets some text.
        return content[-DICTIONARY_BYTES:] or b"nothing yet"
    size = min(DICTIONARY_BYTES, len(content) // 8)
    # All parameters are given, so zstd has none to search for, and the same samples give the same bytes.
    dictionary = zstandard.train_dictionary(size, [*samples], k=256, d=8, f=20, split_point=1.0, accel=1, steps=1, threads=0)
    return dictionary.as_bytes()


def compress(bodies: list[bytes], dictionary: bytes) -> list[bytes]:
    """Compress each body into one frame."""
    if not bodies:
        return []
    # The checksum detects damaged bytes; magic number and dictionary id would only repeat the format.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_dict_id=0, write_checksum=1, write_content_size=1
    )
    shared = zstandard.ZstdCompressionDict(dictionary)
    # Prepare the dictionary once for all frames.
    shared.precompute_compress(compression_params=parameters)
    frames = zstandard.ZstdCompressor(dict_data=shared, compression_params=parameters).multi_compress_to_buffer([*bodies], threads=1)
    return [frames[number].tobytes() for number in range(len(frames))]


def create_decompressor(dictionary: bytes) -> zstandard.ZstdDecompressor:
    """Create a decompressor of bodies. Threads must not share it."""
    return zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(dictionary), format=zstandard.FORMAT_ZSTD1_MAGICLESS)
