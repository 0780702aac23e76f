"""Staging: the content of the dumps, in one conformed form per platform, before anything is merged.

A source record is identified by `platform` + `external_id`. Text is kept as delivered (NFC not applied, case kept). Codes are normalised
and checked, and `reject` holds those that fail. Rows keep the order of the dump. Every text, list and number has a bound, because dumps are
not trusted; the staging writer enforces it (pipeline/dumps/staging/column_bounds.py). Add a column here only when a later stage reads it.
"""

from __future__ import annotations

import pyarrow as pa

from catalog_store.platforms import CATALOG_PLATFORMS, INPUTS, LINK_SOURCES
from catalog_store.tables.spec import BOOL, FLOAT, INT16, INT32, INT64, TEXT, TEXT_LIST, Column, Table

ARTIST_ROLES = ("primary", "featured", "remixer")
DATE_PRECISIONS = ("day", "month", "year")
RELEASE_TYPES = ("album", "single", "ep", "compilation", "other")
ENTITY_KINDS = ("recording", "release", "artist", "label")
TITLED_KINDS = ("recording", "work")

ISRC_PATTERN = "[A-Z]{2}[A-Z0-9]{3}[0-9]{7}"
ISWC_PATTERN = "T[0-9]{10}"
GTIN_PATTERN = "[0-9]{14}"
DATE_PATTERN = "[0-9]{4}-[0-9]{2}-[0-9]{2}"

LONGEST_ID = 200
"""Characters of an id; the longest of any platform's has 40."""
LONGEST_NAME = 4_000
"""Characters of a title or a name. catalog_b's own index allows 2,700 bytes, the store's feed 1,000 characters."""
LONGEST_CREDIT = 20_000
"""Characters of the artists as one text: some orchestras are listed by player."""
LONGEST_URL = 4_000
LONGEST_PATH = 4_096
"""PATH_MAX of Linux."""
MOST_ARTISTS = 1_000
"""On one record; a longer list credits everybody and identifies nobody."""
MOST_CODES = 1_000
"""ISRCs of one record. Real records have up to about sixty."""
MOST_ALIASES = 10_000
MOST_TRAITS = 100
LONGEST_DURATION_MS = 7 * 24 * 3_600_000
"""A week. The longest recordings on sale last a day."""
LARGEST_COUNT = 1_000_000_000
"""The largest count of votes and tracks."""

CREDITED_ARTIST = pa.struct([pa.field("artist_id", TEXT), pa.field("name", TEXT), pa.field("role", TEXT)])
"""One credited artist: the platform's own artist id (null without one), the name as credited, one of ARTIST_ROLES."""

_PLATFORM = Column("platform", TEXT, "Platform key of the dump.", values=INPUTS)
_RELEASE_ID = Column("release_id", TEXT, "The platform's release (album) id.", longest=LONGEST_ID)
_ENTITY_KIND = Column("entity_kind", TEXT, "The kind of entity that the id names.", values=ENTITY_KINDS)
_ARTISTS = Column(
    "artists",
    pa.list_(CREDITED_ARTIST),
    "Credited artists in order; role is one of primary, featured, remixer. May be empty.",
    longest=LONGEST_NAME,
    most=MOST_ARTISTS,
)

SOURCE_RECORDING = Table(
    "source_recording",
    "staging",
    "One row per recording (track) record of a dump: the unit that linkage merges.",
    (
        _PLATFORM,
        Column(
            "external_id",
            TEXT,
            "Id of the record, unique in the platform; catalog_a: `<release id>-<n>`, n counting tracks from 1.",
            longest=LONGEST_ID,
        ),
        Column(
            "link_id",
            TEXT,
            "Id of the record on the platform's site; catalog_a: the release id, else `external_id`.",
            longest=LONGEST_ID,
        ),
        Column("slug", TEXT, "The platform's URL slug of the record, if its URLs carry one.", nullable=True, longest=LONGEST_NAME),
        Column(
            "title", TEXT, "Title as delivered, without `version` where the platform keeps that apart; never blank.", longest=LONGEST_NAME
        ),
        Column(
            "version",
            TEXT,
            "Mix or version words the platform keeps apart from the title, without brackets.",
            nullable=True,
            longest=LONGEST_NAME,
        ),
        _ARTISTS,
        Column(
            "artist_credit",
            TEXT,
            "Artists as one display string, as the platform shows it; null when it names none.",
            nullable=True,
            longest=LONGEST_CREDIT,
        ),
        Column(
            "isrcs", TEXT_LIST, "Well-formed ISRCs, normalised, sorted, distinct; empty when none.", longest=LONGEST_ID, most=MOST_CODES
        ),
        Column(
            "duration_ms",
            INT32,
            "Duration in milliseconds; null when unknown, never 0.",
            nullable=True,
            minimum=1,
            maximum=LONGEST_DURATION_MS,
        ),
        Column(
            "release_id",
            TEXT,
            "The release the record itself names (its album); null for records without one.",
            nullable=True,
            longest=LONGEST_ID,
        ),
        Column("disc_number", INT16, "Medium of `release_id` that holds the record, from 1; null when unknown.", nullable=True, minimum=0),
        Column("track_number", INT16, "Place of the record on that medium, from 1; null when unknown.", nullable=True, minimum=0),
        Column(
            "heading",
            TEXT,
            "Title above the record in the track list of `release_id`: a work over its movements, or a heading; null when there is none.",
            nullable=True,
            longest=LONGEST_NAME,
        ),
        Column(
            "repeats",
            TEXT,
            "`external_id` of the record that this one repeats: the release has its track list a second time, on another medium.",
            nullable=True,
            longest=LONGEST_ID,
        ),
        Column("release_date", TEXT, "The record's own date, padded to YYYY-MM-DD; null when it gives none.", True, pattern=DATE_PATTERN),
        Column("release_date_precision", TEXT, "The known part of `release_date`.", True, values=DATE_PRECISIONS),
        Column("is_explicit", BOOL, "Explicit lyrics flag; null when the platform does not say.", nullable=True),
        Column("is_video", BOOL, "The record is a music video."),
        Column(
            "traits",
            TEXT_LIST,
            "Flags of the platform: remix, live, karaoke, compilation, instrumental, ...",
            longest=LONGEST_ID,
            most=MOST_TRAITS,
        ),
        Column("popularity", FLOAT, "Popularity inside the platform, scaled to 0..1.", nullable=True, minimum=0, maximum=1),
        Column("content_hash", INT64, "Hash of the columns that linkage reads; if it differs, the row is linked again.", nullable=True),
    ),
    primary_key=("platform", "external_id"),
)

SOURCE_RELEASE = Table(
    "source_release",
    "staging",
    "One row per release (album) record of a dump.",
    (
        _PLATFORM,
        _RELEASE_ID,
        Column("title", TEXT, "Release title as delivered; never blank.", longest=LONGEST_NAME),
        Column("version", TEXT, "Version words the platform keeps apart from the title.", nullable=True, longest=LONGEST_NAME),
        _ARTISTS,
        Column("artist_credit", TEXT, "Release artists as one display string.", nullable=True, longest=LONGEST_CREDIT),
        Column("label_id", TEXT, "The platform's label id.", nullable=True, longest=LONGEST_ID),
        Column("label_name", TEXT, "Label (imprint) name; distributors are not labels.", nullable=True, longest=LONGEST_NAME),
        Column("catalog_number", TEXT, "Catalogue number.", nullable=True, longest=LONGEST_NAME),
        Column("gtin", TEXT, "Barcode as GTIN-14, check digit verified.", True, pattern=GTIN_PATTERN),
        Column("release_date", TEXT, "Release date padded to YYYY-MM-DD; null when unknown.", True, pattern=DATE_PATTERN),
        Column("release_date_precision", TEXT, "The known part of `release_date`.", True, values=DATE_PRECISIONS),
        Column("release_type", TEXT, "Kind of release; null when the platform does not say.", True, values=RELEASE_TYPES),
        Column("is_compilation", BOOL, "Various-artists or hits compilation."),
        Column("is_official", BOOL, "False for bootlegs, pseudo-releases and withdrawn ones: they donate no titles or dates."),
        Column("track_count", INT32, "Number of tracks the platform states.", True, minimum=0, maximum=LARGEST_COUNT),
        Column("group_id", TEXT, "Id of the group of editions (release group, master).", nullable=True, longest=LONGEST_ID),
        Column("slug", TEXT, "The platform's URL slug of the release.", nullable=True, longest=LONGEST_NAME),
    ),
    primary_key=("platform", "release_id"),
)

SOURCE_RELEASE_TRACK = Table(
    "source_release_track",
    "staging",
    "The place of each record on its release.",
    (
        _PLATFORM,
        _RELEASE_ID,
        Column("external_id", TEXT, "The recording record.", longest=LONGEST_ID),
        Column("disc_number", INT16, "Medium, from 1; null when unknown.", nullable=True, minimum=0),
        Column("track_number", INT16, "Position on the medium, from 1 (0 = pregap); null when unknown.", nullable=True, minimum=0),
    ),
    sort_key=("platform", "release_id", "disc_number", "track_number", "external_id"),
)

SOURCE_ARTIST = Table(
    "source_artist",
    "staging",
    "One row per artist of a dump.",
    (
        _PLATFORM,
        Column("artist_id", TEXT, "The platform's artist id.", longest=LONGEST_ID),
        Column("name", TEXT, "Name as delivered (catalog_a: with its numeric suffix); never blank.", longest=LONGEST_NAME),
        Column("sort_name", TEXT, "Sort name.", nullable=True, longest=LONGEST_NAME),
        Column("aliases", TEXT_LIST, "Other names of the same artist; empty when none.", longest=LONGEST_NAME, most=MOST_ALIASES),
        Column("popularity", FLOAT, "Popularity inside the platform, scaled to 0..1.", True, minimum=0, maximum=1),
        Column("is_placeholder", BOOL, "Not a performer: Various Artists, Unknown Artist, [no artist], [data] ..."),
    ),
    primary_key=("platform", "artist_id"),
)

SOURCE_LEGAL_NAME = Table(
    "source_legal_name",
    "staging",
    "Legal names of artists. Search finds artists by them; linkage does not read them, because a person records under several names.",
    (
        _PLATFORM,
        Column("artist_id", TEXT, "The platform's artist id.", longest=LONGEST_ID),
        Column("name", TEXT, "Legal name as delivered; never blank.", longest=LONGEST_NAME),
    ),
    primary_key=("platform", "artist_id"),
)

SOURCE_LABEL = Table(
    "source_label",
    "staging",
    "One row per label of a dump.",
    (
        _PLATFORM,
        Column("label_id", TEXT, "The platform's label id.", longest=LONGEST_ID),
        Column("name", TEXT, "Name as delivered; never blank.", longest=LONGEST_NAME),
        Column("parent_label_id", TEXT, "Label it belongs to.", nullable=True, longest=LONGEST_ID),
        Column("is_placeholder", BOOL, "Not a label: Not On Label, [no label] ..."),
    ),
    primary_key=("platform", "label_id"),
)

SOURCE_GENRE = Table(
    "source_genre",
    "staging",
    "Genre strings as the platform gave them, one row per entity and string.",
    (
        _PLATFORM,
        _ENTITY_KIND,
        Column("entity_id", TEXT, "Id of the recording, release or artist that has the string.", longest=LONGEST_ID),
        Column("position", INT16, "Order in the source, from 0; the first is the main one.", minimum=0),
        Column("genre", TEXT, "The string as delivered; never blank.", longest=LONGEST_NAME),
        Column("genre_id", TEXT, "The platform's id of the genre.", nullable=True, longest=LONGEST_ID),
        Column(
            "parent",
            TEXT,
            "The source's parent of the string: the genre above a sub-genre or a style.",
            nullable=True,
            longest=LONGEST_NAME,
        ),
        Column("votes", INT32, "How often users gave it; null where the platform does not count.", nullable=True, maximum=LARGEST_COUNT),
    ),
    sort_key=("platform", "entity_kind", "entity_id", "position", "genre"),
)

SOURCE_LINK = Table(
    "source_link",
    "staging",
    "Statements of a record about its identity on another platform.",
    (
        _PLATFORM,
        _ENTITY_KIND,
        Column("entity_id", TEXT, "Id of the record that carries the link.", longest=LONGEST_ID),
        Column("target_platform", TEXT, "Platform the link points to.", values=LINK_SOURCES),
        Column("target_id", TEXT, "Id on that platform, parsed out of the URL.", longest=LONGEST_ID),
        Column("target_kind", TEXT, "The kind of entity that the target id names.", values=("recording", "release", "artist", "video")),
        Column("url", TEXT, "The URL as delivered.", longest=LONGEST_URL),
    ),
    sort_key=("platform", "entity_kind", "entity_id", "target_platform", "target_id"),
)

SOURCE_REDIRECT = Table(
    "source_redirect",
    "staging",
    "Ids that the platform merged into others.",
    (
        _PLATFORM,
        _ENTITY_KIND,
        Column("old_id", TEXT, "The retired id.", longest=LONGEST_ID),
        Column("new_id", TEXT, "The id that replaced it; chains are already followed.", longest=LONGEST_ID),
    ),
    primary_key=("platform", "entity_kind", "old_id"),
)

SOURCE_WORK = Table(
    "source_work",
    "staging",
    "One row per composition and ISWC.",
    (
        _PLATFORM,
        Column("work_id", TEXT, "The source's work id.", longest=LONGEST_ID),
        Column("iswc", TEXT, "ISWC without separators, check digit verified; null when the source gives none.", True, pattern=ISWC_PATTERN),
        Column("title", TEXT, "Title of the work; never blank.", longest=LONGEST_NAME),
        Column(
            "alternative_titles",
            TEXT_LIST,
            "Other titles of the work, sorted: translations, first lines, known misspellings; null when the source gives none.",
            nullable=True,
            longest=LONGEST_NAME,
            most=MOST_ALIASES,
        ),
    ),
    sort_key=("platform", "work_id", "iswc"),
)

SOURCE_WORK_RECORDING = Table(
    "source_work_recording",
    "staging",
    "Recordings of each work, named by ISRC or by a platform's record.",
    (
        _PLATFORM,
        Column("work_id", TEXT, "The source's work id.", longest=LONGEST_ID),
        Column("isrc", TEXT, "ISRC of the recording, where the source joins by it.", True, pattern=ISRC_PATTERN),
        Column("recording_platform", TEXT, "Platform of `external_id`, where joined by record.", True, values=CATALOG_PLATFORMS),
        Column("external_id", TEXT, "The recording record.", nullable=True, longest=LONGEST_ID),
        Column("recording_title", TEXT, "Title the source gives the recording.", nullable=True, longest=LONGEST_NAME),
        Column("artist_credit", TEXT, "Artist the source gives the recording.", nullable=True, longest=LONGEST_CREDIT),
        Column("duration_ms", INT32, "Duration the source gives the recording.", True, minimum=1, maximum=LONGEST_DURATION_MS),
    ),
    sort_key=("platform", "work_id", "isrc", "recording_platform", "external_id"),
)

SOURCE_TITLE = Table(
    "source_title",
    "staging",
    "Other titles of recordings and works: translations, transliterations, spellings that people search for.",
    (
        _PLATFORM,
        Column("entity_kind", TEXT, "The kind of entity that the id names.", values=TITLED_KINDS),
        Column("entity_id", TEXT, "Id of the recording record, or of the work.", longest=LONGEST_ID),
        Column("title", TEXT, "The other title as delivered; never blank.", longest=LONGEST_NAME),
        Column(
            "locale",
            TEXT,
            "Language and country of the title (`ja`, `en_US`); null when the platform does not say.",
            True,
            longest=LONGEST_ID,
        ),
    ),
    sort_key=("platform", "entity_kind", "entity_id", "title", "locale"),
)

SOURCE_SUGGESTION = Table(
    "source_suggestion",
    "staging",
    "Approved suggestions of callers: what a recording's or an artist's genre is.",
    (
        _PLATFORM,
        Column("suggestion_id", TEXT, "Id in the account store.", longest=LONGEST_ID),
        Column("entity_kind", TEXT, "The kind of entity that `entity_id` names.", values=("recording", "isrc", "artist")),
        Column("entity_id", TEXT, "The catalog's recording or artist id, or an ISRC, normalised.", longest=LONGEST_ID),
        Column("genre_id", INT32, "The suggested node of the canonical tree.", minimum=1),
    ),
    primary_key=("suggestion_id",),
)

REJECT = Table(
    "reject",
    "staging",
    "Records and values that staging rejected, with value, place and reason: nothing is dropped silently.",
    (
        _PLATFORM,
        Column("entity", TEXT, "Staging table the record would have gone to.", longest=LONGEST_ID),
        Column("severity", TEXT, "`row`: the whole record is left out; `field`: it is staged without this value.", values=("row", "field")),
        Column("reason", TEXT, "Stable code; docs/reference/rejects.md says what to do about each.", longest=LONGEST_ID),
        Column("source_file", TEXT, "File (archive member) inside the dump.", longest=LONGEST_PATH),
        Column("place", TEXT, "Place in the file: `line 12`, `record 7`, `rowid 3`, `byte 123456`.", longest=LONGEST_PATH),
        Column("record_id", TEXT, "Id of the record, when it could be read.", nullable=True, longest=LONGEST_ID),
        Column("field", TEXT, "Field of the value at fault.", nullable=True, longest=LONGEST_NAME),
        Column("value", TEXT, "The value at fault, cut to 200 characters.", nullable=True, longest=200),
        Column("excerpt", TEXT, "The raw record, cut to 500 characters.", nullable=True, longest=500),
    ),
    sort_key=("platform", "entity", "source_file", "place", "record_id", "reason", "field", "value"),
)

INTAKE = Table(
    "intake",
    "staging",
    "How many records of each kind a dump held and what became of them: read = staged + rejected.",
    (
        _PLATFORM,
        Column("entity", TEXT, "Staging table the records go to.", longest=LONGEST_ID),
        Column("rows_read", INT64, "Records counted in the dump by the reader.", minimum=0),
        Column("rows_staged", INT64, "Rows written to the staging table.", minimum=0),
        Column("rows_rejected", INT64, "Rows in `reject` with severity `row`.", minimum=0),
        Column("values_rejected", INT64, "Rows in `reject` with severity `field`.", minimum=0),
    ),
    primary_key=("platform", "entity"),
)

STAGING_TABLES = (
    SOURCE_RECORDING,
    SOURCE_RELEASE,
    SOURCE_RELEASE_TRACK,
    SOURCE_ARTIST,
    SOURCE_LEGAL_NAME,
    SOURCE_LABEL,
    SOURCE_GENRE,
    SOURCE_LINK,
    SOURCE_REDIRECT,
    SOURCE_WORK,
    SOURCE_WORK_RECORDING,
    SOURCE_TITLE,
    SOURCE_SUGGESTION,
    REJECT,
    INTAKE,
)
