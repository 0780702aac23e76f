"""Columns that are read of the JSON records of this platform, the union of its layouts, and the layout of each record.

Add a field here when the catalog comes to use it. Polymorphic fields (`label`: text or object) are read as JSON, scalars as text.
"""

from __future__ import annotations

import polars as pl

from pipeline.dumps.staging.layout_expectations import split_names

MEMBERS = ("data", "included")
"""Members of a document that hold its records."""


def build_struct(**fields: str) -> str:
    """Return a DuckDB STRUCT type. Fields without a type are text."""
    return "STRUCT(" + ", ".join(f'"{name}" {dtype}' for name, dtype in fields.items()) + ")"


def declare_texts(*names: str) -> dict[str, str]:
    """Return fields that are text."""
    return dict.fromkeys(names, "VARCHAR")


_NAMED = build_struct(**declare_texts("id", "name"))
_REFERENCES = build_struct(data=build_struct(**declare_texts("id", "type")) + "[]")
_ITEMS = build_struct(
    data=build_struct(**declare_texts("id", "type"), meta=build_struct(**declare_texts("trackNumber", "volumeNumber"))) + "[]"
)
_CONTRIBUTORS = build_struct(**declare_texts("id", "name", "role")) + "[]"
_CREDITED = build_struct(**declare_texts("id", "name"), roles="VARCHAR[]") + "[]"

FLAT_TRACK = {
    **declare_texts("id", "title", "title_short", "title_version", "isrc", "duration", "rank", "release_date", "explicit_lyrics"),
    **declare_texts("explicit_content_lyrics", "track_position", "disk_number"),
    "artist": _NAMED,
    "contributors": _CONTRIBUTORS,
}
LINED_ALBUM = {
    **declare_texts(
        "upc", "version", "release_date_original", "release_date_stream", "release_date_download", "release_type", "tracks_count"
    ),
    # A text in one flat layout, an object in the other.
    "label": "JSON",
    "genre": _NAMED,
    "genres_list": "VARCHAR[]",
    "artists": _CREDITED,
}
LINED_TRACK = {
    **declare_texts("id", "title", "version", "isrc", "duration", "track_number", "media_number", "parental_warning", "performers")
} | {"performer": _NAMED}
COLUMNS = {
    **declare_texts("id", "type", "name"),
    "attributes": build_struct(
        **declare_texts(
            "title", "name", "genreName", "version", "isrc", "duration", "explicit", "popularity", "barcodeId", "albumType", "type"
        ),
        **declare_texts("releaseDate", "numberOfItems"),
    ),
    "relationships": build_struct(artists=_REFERENCES, albums=_REFERENCES, genres=_REFERENCES, items=_ITEMS),
    "resource": build_struct(
        **declare_texts("id", "artifactType", "title", "version", "isrc", "duration", "trackNumber", "volumeNumber", "barcodeId", "type"),
        **declare_texts("releaseDate", "numberOfTracks"),
        artists=build_struct(**declare_texts("id", "name", "main")) + "[]",
        album=build_struct(**declare_texts("id", "title")),
        properties=build_struct(content="VARCHAR[]"),
    ),
    **FLAT_TRACK,
    **LINED_TRACK,
    **LINED_ALBUM,
    "album": build_struct(**declare_texts("id", "title", "release_date"), **LINED_ALBUM, artist=_NAMED),
    **declare_texts("genre_id", "record_type", "nb_tracks"),
    "genres": build_struct(data=_NAMED + "[]"),
    "tracks": build_struct(data=build_struct(**FLAT_TRACK) + "[]", items=build_struct(**LINED_TRACK) + "[]"),
}

USUAL = split_names("""
    id attributes.title attributes.isrc attributes.duration relationships.artists resource.title resource.isrc resource.duration
""")
"""Members that every dump of some size has, as far as it is of that layout."""
IGNORED = split_names("""
    available explicit_content_cover rating timestamp message status attributes.visualMetadata attributes.roles
    attributes.mediaTags attributes.key attributes.keyScale attributes.bpm attributes.copyright attributes.availability
    attributes.accessType attributes.createdAt attributes.ai attributes.externalLinks attributes.toneTags attributes.spotlighted
    attributes.numberOfVolumes attributes.handle attributes.imageLinks attributes.videoLinks attributes.files attributes.mediaType
    attributes.source links meta relationships.* resource.* bpm gain rank available_countries preview link share md5_image picture*
    cover* readable unseen fans nb_fan nb_album artist.* album.* contributors.* genres.* tracks.* tracklist time_add radio track_token
    performer.* genre.* composer work copyright audio_info maximum_* hires* streamable* purchasable* downloadable displayable
    previewable sampleable purchasable streamable released_at release_tags qobuz_id product_* media_count slug image url articles awards
    goodies popularity relative_url description* is_official label.* artists.* catchline subtitle dates recording_information duration
    genre_id version created_at position isrc isVideo
""")
"""Known members of records that the catalog does not need."""
RESOURCES = ("tracks", "videos", "albums", "artists")
IGNORED_RESOURCES = (
    "artworks",
    "providers",
    "lyrics",
    "playlists",
    "users",
    "credits",
    "artistRoles",
    "searchResults",
    "trackFiles",
    "shares",
)
"""Resources that the catalog does not need. `providers` are distributors, not labels."""
KIND_SHAPES = {"genre": (pl.col("id"), pl.coalesce(pl.col("attributes").struct.field("genreName"), "name"))}
"""Columns that are read of a genre: its id and its name."""


def detect_layout() -> pl.Expr:
    """Return the layout of a record: a key of `LAYOUTS`, `genre`, `ignored`, or `unknown`."""
    record_type = pl.col("type")
    has = {name: pl.col(name).is_not_null() for name in COLUMNS}
    # From the surest sign to the weakest: `type` and envelopes first, then fields that one layout has, then fields that several have.
    rules = [
        (record_type.is_in(RESOURCES), "resource"),
        (record_type.is_in(["genre", "genres"]), "genre"),
        (record_type.is_in(IGNORED_RESOURCES), "ignored"),
        (has["resource"], "older"),
        (record_type.is_in(["track", "album", "artist"]), record_type),
        (record_type.is_not_null() | has["attributes"], "unknown"),
        (has["performer"] | has["performers"] | has["media_number"], "lined_track"),
        (has["tracks_count"] | has["genres_list"] | has["release_date_original"], "lined_album"),
        (has["title_short"] | has["album"] | has["isrc"] | has["rank"], "track"),
        (has["record_type"] | has["nb_tracks"] | has["upc"] | has["genre_id"], "album"),
    ]
    found: pl.Expr = pl.lit("unknown")
    # Reversed, because the last condition wins.
    for condition, name in reversed(rules):
        found = pl.when(condition).then(name if isinstance(name, pl.Expr) else pl.lit(name)).otherwise(found)
    return found
