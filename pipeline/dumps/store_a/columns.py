"""The forms in which this platform delivers JSON, the columns that are read of each, and which kind of record one is.

A form is told by a field name that no other form has, looked for in the first bytes of the file. Add a field here when the catalog comes to
use it; scalars are read as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.compressed import DumpFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SNIFF_BYTES = 256 << 10


@dataclass(frozen=True)
class Form:
    """`markers`: field names that tell the form; `members`: where its documents hold their records."""

    name: str
    columns: Mapping[str, str]
    members: tuple[str, ...]
    markers: tuple[bytes, ...] = ()


def _struct(*names: str, **fields: str) -> str:
    return "STRUCT(" + ", ".join(f'"{name}" {dtype}' for name, dtype in {**dict.fromkeys(names, "VARCHAR"), **fields}.items()) + ")"


def _texts(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "VARCHAR")


_NAMED = _struct("id", "name", "slug")
_TYPED = _struct("id", "name", "slug", "type")
VERSION_4 = Form(
    "version_4",
    {
        **_texts("id", "name", "mix_name", "slug", "isrc", "length_ms", "length", "number", "catalog_number", "publish_date"),
        **_texts("new_release_date", "is_explicit", "is_dj_edit", "is_ugc_remix", "upc", "track_count"),
        "artists": f"{_NAMED}[]",
        "remixers": f"{_NAMED}[]",
        "genre": _NAMED,
        "sub_genre": _NAMED,
        "release": _struct("id", "name", "slug", label=_NAMED),
        "label": _NAMED,
        "type": _struct("id", "name"),
    },
    ("results", "tracks", "releases"),
)
VERSION_3 = Form(
    "version_3",
    {
        **_texts("id", "type", "name", "mixName", "slug", "trackNumber", "releaseDate", "publishDate", "length", "lengthMs"),
        **_texts("catalogNumber", "category"),
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
        **_texts("track_id", "track_name", "mix_name", "isrc", "length"),
        "artists": _struct("artist_id", "artist_name", "artist_type_name") + "[]",
        "genre": _struct("genre_id", "genre_name") + "[]",
        "release": _struct("release_id", "release_name"),
    },
    ("tracks.data", "data"),
    (b'"track_name"',),
)
TRACK_LIST = Form(
    "track_list",
    {
        **_texts("id", "title", "name", "mix", "release", "label", "published_date", "duration_ms"),
        "artists": "VARCHAR[]",
        "remixers": "VARCHAR[]",
    },
    ("tracks",),
    (b'"published_date"',),
)
FORMS = (VERSION_3, SITE_SEARCH, TRACK_LIST, VERSION_4)


def form_of(path: Path) -> Form:
    """The form of a JSON file; version 4 when nothing tells otherwise. DumpError when the file cannot be read."""
    with DumpFile(path) as file:
        head = file.read(SNIFF_BYTES)
    return next((form for form in FORMS if any(marker in head for marker in form.markers)), VERSION_4)


def kind_of(form: Form, entity: str) -> pl.Expr:
    """Whether a record is a `track`, `release`, `artist`, `label` or `unknown`; `entity` (of the file) decides on bare ones."""
    if form in (SITE_SEARCH, TRACK_LIST):
        return pl.lit("track")
    has = {name: pl.col(name).is_not_null() for name in form.columns}
    if form is VERSION_3:
        known = pl.col("type").is_in(["track", "release", "artist", "label"])
        return pl.when(known).then(pl.col("type")).when(has["mixName"] | has["lengthMs"]).then(pl.lit("track")).otherwise(pl.lit("unknown"))
    bare = pl.lit(entity.removeprefix("source_").replace("recording", "track"))
    return (
        pl.when(has["mix_name"] | has["length_ms"] | has["genre"] | has["release"] | has["isrc"])
        .then(pl.lit("track"))
        .when(has["upc"] | has["track_count"] | has["label"] | has["type"])
        .then(pl.lit("release"))
        .when(has["name"])
        .then(bare)
        .otherwise(pl.lit("unknown"))
    )
