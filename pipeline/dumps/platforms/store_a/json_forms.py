"""Forms of this platform's JSON: the columns that are read of each, and the kind of each record.

The first bytes of a file tell its form: they hold a field name that no other form has. Add a field here when the catalog comes to use it;
scalars are read as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.readers.compressed_files import DumpFile
from pipeline.dumps.staging.layout_expectations import split_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SNIFF_BYTES = 256 << 10


@dataclass(frozen=True)
class Form:
    """`markers`: field names that tell the form; `members`: where its documents hold their records; `usual`: in every dump of some size."""

    name: str
    columns: Mapping[str, str]
    members: tuple[str, ...]
    markers: tuple[bytes, ...] = ()
    usual: tuple[str, ...] = ("id", "name", "artists")


def _build_struct(*names: str, **fields: str) -> str:
    return "STRUCT(" + ", ".join(f'"{name}" {dtype}' for name, dtype in {**dict.fromkeys(names, "VARCHAR"), **fields}.items()) + ")"


def _declare_texts(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "VARCHAR")


_NAMED = _build_struct("id", "name", "slug")
_TYPED = _build_struct("id", "name", "slug", "type")
VERSION_4 = Form(
    "version_4",
    {
        **_declare_texts("id", "name", "mix_name", "slug", "isrc", "length_ms", "length", "number", "catalog_number", "publish_date"),
        **_declare_texts("new_release_date", "is_explicit", "is_dj_edit", "is_ugc_remix", "upc", "track_count"),
        "artists": f"{_NAMED}[]",
        "remixers": f"{_NAMED}[]",
        "genre": _NAMED,
        "sub_genre": _NAMED,
        "release": _build_struct("id", "name", "slug", label=_NAMED),
        "label": _NAMED,
        "type": _build_struct("id", "name"),
    },
    ("results", "tracks", "releases"),
    usual=("id", "name", "isrc", "length_ms", "artists", "release", "genre", "mix_name"),
)
VERSION_3 = Form(
    "version_3",
    {
        **_declare_texts("id", "type", "name", "mixName", "slug", "trackNumber", "releaseDate", "publishDate", "length", "lengthMs"),
        **_declare_texts("catalogNumber", "category"),
        "artists": f"{_TYPED}[]",
        "genres": f"{_NAMED}[]",
        "subGenres": f"{_NAMED}[]",
        "release": _NAMED,
        "label": _NAMED,
    },
    ("results", "tracks", "releases"),
    (b'"mixName"', b'"catalogNumber"', b'"lengthMs"'),
)
SITE_SEARCH = Form(
    "site_search",
    {
        **_declare_texts("track_id", "track_name", "mix_name", "isrc", "length"),
        "artists": _build_struct("artist_id", "artist_name", "artist_type_name") + "[]",
        "genre": _build_struct("genre_id", "genre_name") + "[]",
        "release": _build_struct("release_id", "release_name"),
    },
    ("tracks.data", "data"),
    (b'"track_name"',),
    ("track_id", "track_name", "artists"),
)
TRACK_LIST = Form(
    "track_list",
    {
        **_declare_texts("id", "title", "name", "mix", "release", "label", "published_date", "duration_ms"),
        "artists": "VARCHAR[]",
        "remixers": "VARCHAR[]",
    },
    ("tracks",),
    (b'"published_date"',),
    ("id", "title", "artists"),
)
IGNORED = split_names("""
    audioFormat genres.* subGenres.* sub_genre.*
    bsrc_remixer bpm bpm_range key label_track_identifier pre_order* encoded_date publish_status current_status exclusive is_*
    available_worldwide price sale_type sample_* free_download* url image images dynamicImages tracks desc grid enabled hidden updated
    hype* was_ever_exclusive isrc upc territories audioFormats artists.url artists.image artists.slug artists.status
    artists.dynamic_image* artists.is_* artists.enabled artists.label remixers.url remixers.image remixers.slug remixers.status
    remixers.dynamic_image* remixers.is_* remixers.enabled remixers.label bsrc_remixer.url bsrc_remixer.image bsrc_remixer.slug
    bsrc_remixer.status bsrc_remixer.dynamic_image* bsrc_remixer.is_* bsrc_remixer.enabled bsrc_remixer.label release.url release.image
    release.slug release.status release.dynamic_image* release.is_* release.enabled release.label release.label.url release.label.image
    release.label.slug release.label.status release.label.dynamic_image* release.label.is_* release.label.enabled release.label.label
    label.url label.image label.slug label.status label.dynamic_image* label.is_* label.enabled label.label genre.url genre.image
    genre.slug genre.status genre.dynamic_image* genre.is_* genre.enabled genre.label sub_genre.url sub_genre.image sub_genre.slug
    sub_genre.status sub_genre.dynamic_image* sub_genre.is_* sub_genre.enabled sub_genre.label subGenres.url subGenres.image
    subGenres.slug subGenres.status subGenres.dynamic_image* subGenres.is_* subGenres.enabled subGenres.label genres.url genres.image
    genres.slug genres.status genres.dynamic_image* genres.is_* genres.enabled genres.label type.url type.image type.slug type.status
    type.dynamic_image* type.is_* type.enabled type.label title sku exclusiveDate currentStatus preOrder* streamAvailable rank chart*
    duration downloadSampleUrl waveform* audioFormatFee streamAudioFormatFees saleType subscriptionPrice suggest number type
    catalog_number score supplier_id chart_* create_date update_date plays downloads label.label_* artists.* release.* genre.* label.*
    remixers.* meta count next previous page per_page results position guid description
""")
"""Known members of records that the catalog does not need."""
FORMS = (VERSION_3, SITE_SEARCH, TRACK_LIST, VERSION_4)


def detect_form(path: Path) -> Form:
    """Return the form of a JSON file; version 4 without another mark. Raises DumpError when the file cannot be read."""
    with DumpFile(path) as file:
        # Documents name their fields in the first records, so the file is not parsed for this.
        head = file.read(SNIFF_BYTES)
    return next((form for form in FORMS if any(marker in head for marker in form.markers)), VERSION_4)


def detect_kind(form: Form, entity: str) -> pl.Expr:
    """Return the kind of a record: `track`, `release`, `artist`, `label` or `unknown`. `entity` (of the file) decides on bare ones."""
    if form in (SITE_SEARCH, TRACK_LIST):
        return pl.lit("track")
    has = {name: pl.col(name).is_not_null() for name in form.columns}
    if form is VERSION_3:
        known = pl.col("type").is_in(["track", "release", "artist", "label"])
        return pl.when(known).then(pl.col("type")).when(has["mixName"] | has["lengthMs"]).then(pl.lit("track")).otherwise(pl.lit("unknown"))
    # An object with an id and a name only may be an artist or a label: the file name decides.
    bare = pl.lit(entity.removeprefix("source_").replace("recording", "track"))
    return (
        # Tracks before releases: a track names its release, and a release has none of these.
        pl.when(has["mix_name"] | has["length_ms"] | has["genre"] | has["release"] | has["isrc"])
        .then(pl.lit("track"))
        .when(has["upc"] | has["track_count"] | has["label"] | has["type"])
        .then(pl.lit("release"))
        .when(has["name"])
        .then(bare)
        .otherwise(pl.lit("unknown"))
    )
