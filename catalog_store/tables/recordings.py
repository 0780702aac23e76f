"""Golden recordings and their artists.

`recording` has one row per recording, and repeated values are in tables of their own. `track` nests them again for readers that need a
whole track at once.
"""

from __future__ import annotations

import pyarrow as pa

from catalog_store.platforms import CATALOG_PLATFORMS, SOURCES
from catalog_store.tables.spec import BOOL, DATE, FLOAT, INT16, INT32, INT64, TEXT, Column, Table
from catalog_store.tables.staging import DATE_PRECISIONS, ISRC_PATTERN

LISTED_KINDS = ("name", "alias", "sort_name", "legal_name")
"""Names that a platform lists with the artist."""
ALIAS_KINDS = (*LISTED_KINDS, "credit")
TITLE_ALIAS_KINDS = ("recording", "work", "parallel")

_VARIANT = pa.struct([pa.field("kind", TEXT), pa.field("name", TEXT), pa.field("year", INT32)])
_RECORDING_ID = Column("recording_id", INT64, "The recording.", references="recording.recording_id")

RECORDING = Table(
    "recording",
    "catalog",
    "One row per recording: the golden record of all source records merged into it.",
    (
        Column("recording_id", INT64, "Stable id; the API calls it track id.", minimum=1),
        Column("title", TEXT, "Title with its version, as displayed."),
        Column("variant", TEXT, "Normal form of the variant (remix by whom, live ...); empty for the plain recording."),
        Column(
            "variants",
            pa.list_(_VARIANT),
            "The parts of `variant`: kind (remix, live ...), name (by whom or where, without spaces), year; empty for the plain recording.",
        ),
        Column("artist_credit", TEXT, "Artists as one display string."),
        Column("isrc", TEXT, "Representative ISRC: most sources, then earliest year, then lexicographic.", True, pattern=ISRC_PATTERN),
        Column("duration_ms", INT32, "Median of the sources' durations.", True, minimum=1),
        Column("duration_seconds", INT32, "The same in whole seconds, half up.", True, minimum=1),
        Column("release_date", DATE, "Earliest release date; unknown parts are 1.", True),
        Column("release_date_precision", TEXT, "The known part of `release_date`.", True, values=DATE_PRECISIONS),
        Column("popularity", FLOAT, "0..1 over all platforms.", minimum=0, maximum=1),
        Column("source_count", INT32, "Source records merged into it.", minimum=1),
        Column("platform_count", INT32, "Platforms that have it.", minimum=1),
        Column("title_platform", TEXT, "Platform that gave the title.", nullable=True),
    ),
    primary_key=("recording_id",),
)

RECORDING_ISRC = Table(
    "recording_isrc",
    "catalog",
    "Every ISRC a recording carries; no ISRC belongs to two recordings.",
    (
        Column("isrc", TEXT, "The code.", pattern=ISRC_PATTERN),
        _RECORDING_ID,
        Column("is_representative", BOOL, "True for the code that the track shows."),
        Column("platform_count", INT32, "Platforms that give it.", minimum=1),
    ),
    primary_key=("isrc",),
)

RECORDING_ARTIST = Table(
    "recording_artist",
    "catalog",
    "Artists of a recording, in display order.",
    (
        _RECORDING_ID,
        Column("position", INT16, "Order, from 0.", minimum=0),
        Column("artist_id", INT64, "The artist.", references="artist.artist_id"),
        Column("name", TEXT, "The artist's name: the same on every recording."),
        Column("credited_as", TEXT, "Name by which this recording credits the artist, if it differs.", nullable=True),
        Column("is_primary", BOOL, "True for a main artist, false for a guest."),
        Column("is_remixer", BOOL, "True if the artist made this remix."),
    ),
    primary_key=("recording_id", "position"),
)

RECORDING_ALIAS = Table(
    "recording_alias",
    "catalog",
    "Other titles of a recording: one row per title, kind, platform and locale. Search finds the recording by them.",
    (
        _RECORDING_ID,
        Column("alias", TEXT, "The other title, as delivered; never the text of `recording.title`."),
        Column(
            "kind",
            TEXT,
            "`recording`: the platform lists it with the record; `work`: with the work that is performed; `parallel`: a title and its "
            "translation are one text (`A = B`), and this is a part of it.",
            values=TITLE_ALIAS_KINDS,
        ),
        Column("platform", TEXT, "Source that gives the title.", values=SOURCES),
        Column("locale", TEXT, "Language and country of the title, as delivered.", nullable=True),
    ),
    sort_key=("recording_id", "alias", "kind", "platform", "locale"),
)

RECORDING_RELEASE = Table(
    "recording_release",
    "catalog",
    "Releases of a recording.",
    (
        _RECORDING_ID,
        Column("release_id", INT64, "The release.", references="release.release_id"),
        Column("disc_number", INT16, "Medium, from 1.", nullable=True),
        Column("track_number", INT16, "Position on the medium.", nullable=True),
    ),
    primary_key=("recording_id", "release_id"),
)

ARTIST = Table(
    "artist",
    "catalog",
    "One row per artist.",
    (
        Column("artist_id", INT64, "Stable id.", minimum=1),
        Column("name", TEXT, "Display name, without numeric suffixes."),
        Column("sort_name", TEXT, "Sort name.", nullable=True),
        Column("release_count", INT32, "Releases of which it is an artist.", minimum=0),
        Column("recording_count", INT32, "Recordings it is credited on.", minimum=0),
        Column("popularity", FLOAT, "0..1 over all platforms.", minimum=0, maximum=1),
    ),
    primary_key=("artist_id",),
)

ARTIST_SOURCE = Table(
    "artist_source",
    "catalog",
    "The artist that each platform artist became.",
    (
        Column("platform", TEXT, "Platform key."),
        Column("external_id", TEXT, "The platform's artist id."),
        Column("artist_id", INT64, "The artist.", references="artist.artist_id"),
    ),
    primary_key=("platform", "external_id"),
)

ARTIST_ALIAS = Table(
    "artist_alias",
    "catalog",
    "Names of an artist besides `artist.name`: one row per name, kind and platform.",
    (
        Column("artist_id", INT64, "The artist.", references="artist.artist_id"),
        Column("alias", TEXT, "The other name, without numeric suffixes."),
        Column(
            "kind",
            TEXT,
            "`name`: the platform's name of the artist; `alias`: another name that it lists; `sort_name`; `legal_name`: of a person who "
            "performs under another name; `credit`: a name on records.",
            values=ALIAS_KINDS,
        ),
        Column("platform", TEXT, "Platform that gives the name.", values=CATALOG_PLATFORMS),
    ),
    primary_key=("artist_id", "alias", "kind", "platform"),
)

RECORDING_TABLES = (
    RECORDING,
    RECORDING_ISRC,
    RECORDING_ARTIST,
    RECORDING_ALIAS,
    RECORDING_RELEASE,
    ARTIST,
    ARTIST_SOURCE,
    ARTIST_ALIAS,
)
