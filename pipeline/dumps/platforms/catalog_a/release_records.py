"""Releases with their genres and links out of one block of records. `track_records.py` takes their track lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.dumps.fields.dates import parse_date
from pipeline.dumps.platforms.catalog_a.batch import Batch, select_sound_records
from pipeline.dumps.platforms.catalog_a.identifiers import IDENTIFIER_PARTS, find_barcodes
from pipeline.dumps.platforms.catalog_a.names import VARIOUS, is_placeholder_label, read_known_id, strip_namesake_suffix
from pipeline.dumps.platforms.catalog_a.release_credits import build_artist_lists, build_credit_texts, read_credited_artists
from pipeline.dumps.platforms.catalog_a.track_records import TRACK_VALUES, stage_tracks
from pipeline.dumps.platforms.catalog_a.xml_extraction import ITEM, extract, list_items
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_a.xml_blocks import Block

RELEASE_VALUES = (
    "release_id", "status", "title", "released", "master_id", "label_id", "label_name", "catalog_number", "quantity", "formats",
    "descriptions", "genres", "styles", "identifiers", "videos", "artists", "extras", "row_count",
)  # fmt: skip
"""Columns of the stylesheet's release section."""

_TYPES = {
    "compilation": ("Compilation", "Sampler"),
    "ep": ("EP",),
    "single": ("Single", "Maxi-Single"),
    "album": ("Album", "Mini-Album", "LP"),
}
"""Release type by format description; the first that fits counts, because an `LP` is also a record size."""
_VIDEO_FORMATS = "DVD|VHS|Betamax|Laserdisc|Blu-ray|HD DVD|Video 2000|UMD|VCD"
_AUDIO_DISCS = ("DVD-Audio", "Blu-ray Audio")
_UNOFFICIAL = ("Unofficial Release", "Partially Unofficial", "Counterfeit", "Pirate")
_NO_CATALOG_NUMBER = ("", "none")
_VIDEO_ID = r"(?:[?&]v=|youtu\.be/|/embed/|/v/)([A-Za-z0-9_-]{11})(?:[^A-Za-z0-9_-]|$)"


def read_releases(source_file: str, block: Block) -> Batch:
    """Return the batch of a block of `<release>` records. A rejected release takes its tracks along."""
    extraction = extract(block, (RELEASE_VALUES, TRACK_VALUES))
    batch = Batch(source_file)
    batch.reject_broken("source_release", extraction.broken)
    releases, rows = extraction.frames
    # Track rows follow their release in document order. The stylesheet counts them, so no key is repeated in the text.
    owners = np.repeat(np.arange(releases.height, dtype=np.uint32), releases["row_count"].cast(pl.Int64).to_numpy())
    releases = select_sound_records(releases, "source_release", "release_id", "title", extraction, batch)
    releases = releases.with_columns(
        # `quantity` stays text: one release has a quantity of 64 digits. Files count as one medium, whatever their number.
        is_single_medium=(pl.col("quantity") == "1") | pl.col("formats").str.contains(f"^(?:File{ITEM})+$"),
        # DVD and Blu-ray also carry sound alone, and only the description says so.
        is_video_release=pl.col("formats").str.contains(f"^(?:(?:{_VIDEO_FORMATS}){ITEM})+$") & ~_is_described_as(*_AUDIO_DISCS),
    )
    rows = rows.with_columns(pl.Series("release", owners))
    credited = read_credited_artists(releases)
    tracks = stage_tracks(rows, releases, credited, batch)
    good_codes, bad_codes = find_barcodes(
        list_items(releases.select("owner", "release_id", "place", "identifiers"), "identifiers", IDENTIFIER_PARTS)
    )
    batch.reject_values("source_release", Reason.INVALID_GTIN, bad_codes, "release_id", "identifiers/Barcode", pl.col("value"))
    releases = releases.drop("artists")
    for joined in (build_artist_lists(credited), build_credit_texts(credited), good_codes, tracks):
        releases = releases.join(joined, on="owner", how="left", maintain_order="left")
    _stage_releases(releases, batch)
    _stage_genres(releases, batch)
    _stage_links(releases, batch)
    return batch


def _is_described_as(*descriptions: str) -> pl.Expr:
    """Return an expression: whether one of the format descriptions is one of these."""
    return (pl.lit(ITEM) + pl.col("descriptions")).str.contains(f"{ITEM}(?:{'|'.join(descriptions)}){ITEM}")


def _stage_releases(releases: pl.DataFrame, batch: Batch) -> None:
    date = parse_date(pl.col("released"))
    release_type = pl.lit(None, dtype=pl.String)
    # Reversed, because the last condition wins: the first type of the table goes before the others.
    for name, descriptions in reversed(_TYPES.items()):
        release_type = pl.when(_is_described_as(*descriptions)).then(pl.lit(name)).otherwise(release_type)
    is_various = pl.col("artists").list.first().struct.field("artist_id") == VARIOUS
    no_label = is_placeholder_label(pl.col("label_id"), pl.col("label_name"))
    catalog_number = pl.col("catalog_number").str.strip_chars()
    releases = releases.with_columns(release_date=date.struct.field("date"), release_date_precision=date.struct.field("precision"))
    batch.frames["source_release"] = releases.select(
        "place",
        "release_id",
        "title",
        pl.col("artists").fill_null([]),
        "artist_credit",
        label_id=pl.when(~no_label).then(read_known_id(pl.col("label_id"))),
        label_name=pl.when(~no_label).then(strip_namesake_suffix(pl.col("label_name"))),
        catalog_number=pl.when(~catalog_number.str.to_lowercase().is_in(_NO_CATALOG_NUMBER)).then(catalog_number),
        gtin="gtin",
        release_date="release_date",
        release_date_precision="release_date_precision",
        release_type=release_type,
        is_compilation=_is_described_as(*_TYPES["compilation"]) | is_various.fill_null(value=False),
        # Dumps of 2026 have no `status` any more; an absent one means accepted.
        is_official=~_is_described_as(*_UNOFFICIAL) & pl.col("status").is_in(["", "Accepted"]),
        track_count=pl.col("track_count").fill_null(0),
        group_id=read_known_id(pl.col("master_id")),
    )
    impossible = releases.filter(_has_lost_date_part())
    batch.reject_values("source_release", Reason.INVALID_DATE, impossible, "release_id", "released", pl.col("released"))


def _has_lost_date_part() -> pl.Expr:
    """Return whether `parse_date` could not take a delivered year, month or day. Zeros mean unknown."""
    raw, precision = pl.col("released").str.strip_chars(), pl.col("release_date_precision")
    # `1999-00-00` says that month and day are unknown, which is not a fault. `1999-13-00` has a month that no year has.
    no_year = precision.is_null() & ~raw.str.contains(r"^[0\-]*$")
    no_month = (precision == "year") & raw.str.contains(r"^\d{4}\D0*[1-9]")
    no_day = precision.is_in(["year", "month"]) & raw.str.contains(r"^\d{4}\D\d{1,2}\D0*[1-9]")
    return no_year | (no_month | no_day).fill_null(value=False)


def _stage_genres(releases: pl.DataFrame, batch: Batch) -> None:
    keys = releases.select("owner", "release_id", "place", "genres", "styles")
    genres = list_items(keys.drop("styles"), "genres", ("genre",))
    # Styles are beside genres without saying which is above. Only with a single genre is the parent certain.
    only = genres.group_by("owner").agg(parent=pl.when(pl.len() == 1).then(pl.col("genre").first()))
    styles = list_items(keys.drop("genres"), "styles", ("genre",)).join(only, on="owner", how="left", maintain_order="left")
    both = pl.concat([genres.with_columns(parent=pl.lit(None, dtype=pl.String)), styles]).filter(pl.col("genre").str.strip_chars() != "")
    is_number = pl.col("genre").str.contains(r"^\s*\d+\s*$")
    batch.reject_values("source_release", Reason.UNKNOWN_KIND, both.filter(is_number), "release_id", "genres", pl.col("genre"))
    both = both.filter(~is_number).sort("owner", maintain_order=True)
    position = pl.int_range(pl.len(), dtype=pl.Int16).over("owner")
    batch.frames["source_genre"] = both.select(
        "place", "genre", "parent", entity_kind=pl.lit("release"), entity_id="release_id", position=position
    )


def _stage_links(releases: pl.DataFrame, batch: Batch) -> None:
    videos = list_items(releases.select("owner", "release_id", "place", "videos"), "videos", ("url",)).filter(pl.col("url") != "")
    videos = videos.with_columns(target_id=pl.col("url").str.extract(_VIDEO_ID))
    strange = videos.filter(pl.col("target_id").is_null())
    batch.reject_values("source_release", Reason.UNKNOWN_KIND, strange, "release_id", "videos", pl.col("url"))
    known = videos.filter(pl.col("target_id").is_not_null()).unique(["owner", "target_id"], keep="first", maintain_order=True)
    batch.frames["source_link"] = known.select(
        "place",
        "target_id",
        "url",
        entity_kind=pl.lit("release"),
        entity_id="release_id",
        target_platform=pl.lit("video_a"),
        target_kind=pl.lit("video"),
    )
