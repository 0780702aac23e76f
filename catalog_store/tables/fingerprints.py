"""Fingerprints of the fingerprint dump and of operators' own audio files, and the recording of each.

A fingerprint is a list of 32-bit items, about eight a second. Staging keeps it once, under the day of its arrival, and only grows; the
catalog table lists the valid fingerprints without repeating them. Add a column here only when a later stage reads it. The files of an index
over fingerprints belong in audio_recognition/index/.
"""

from __future__ import annotations

import pyarrow as pa

from catalog_store.platforms import AUDIO, CATALOG_PLATFORMS, FINGERPRINT_SOURCES, FINGERPRINTS
from catalog_store.tables.spec import BOOL, INT16, INT32, INT64, TEXT, Column, Table
from catalog_store.tables.staging import DATE_PATTERN, ISRC_PATTERN, LARGEST_COUNT, LONGEST_ID, LONGEST_NAME, LONGEST_PATH

ITEMS = pa.list_(pa.uint32())
UUID_PATTERN = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
MOST_ITEMS = 1 << 20
"""The longest fingerprint lasts 36 hours."""
MOST_PEAKS = 1 << 23
"""Some 20 a second, or 200 of a tone without end."""
LONGEST_SECONDS = 7 * 24 * 3_600
"""A week, as for durations."""
ROWS_PER_GROUP = 1_000
"""Rows have about 5 kB, so one fingerprint is read from at most 5 MB."""

_PLATFORM = Column("platform", TEXT, "The source.", values=FINGERPRINT_SOURCES)
_DAY = Column("day", TEXT, "The day of the dump; of rows with one id, those of the latest day count.", pattern=DATE_PATTERN)
_TRACK = Column("fingerprint_track_id", INT64, "The fingerprint track: fingerprints that the source treats as one recording.", minimum=1)

SOURCE_FINGERPRINT = Table(
    "source_fingerprint",
    "staging",
    "Fingerprints of a dump, or of an operator's audio files.",
    (
        _PLATFORM,
        Column(
            "day",
            TEXT,
            f"The day of the dump; of rows with one id, those of the latest day count; null for {AUDIO}.",
            True,
            pattern=DATE_PATTERN,
        ),
        Column("fingerprint_id", INT64, f"Id in the source; {AUDIO}: minus a 63-bit hash of the file's content."),
        Column(
            "fingerprint_key",
            INT64,
            "Hash of id and items: identifies this exact fingerprint, even if the id is delivered again with other items.",
        ),
        Column("duration_seconds", INT32, "Length of the audio that it was made of.", minimum=1, maximum=LONGEST_SECONDS),
        Column("items", ITEMS, "The items in order.", most=MOST_ITEMS),
    ),
    primary_key=("platform", "fingerprint_id"),
    rows_per_group=ROWS_PER_GROUP,
)

SOURCE_LANDMARK = Table(
    "source_landmark",
    "staging",
    "Landmarks of an operator's audio files: peaks of the spectrum, which stand out in coloured sound as well.",
    (
        Column("platform", TEXT, "The source.", values=(AUDIO,)),
        Column("fingerprint_id", INT64, "The fingerprint of the same content.", references="source_fingerprint.fingerprint_id"),
        Column("fingerprint_key", INT64, "Its key."),
        Column("peaks", ITEMS, "The peaks in order: frame << 10 | bin (audio_recognition/landmarks/peaks.py).", most=MOST_PEAKS),
    ),
    primary_key=("fingerprint_id",),
    rows_per_group=ROWS_PER_GROUP,
)

SOURCE_FINGERPRINT_TRACK = Table(
    "source_fingerprint_track",
    "staging",
    "Fingerprint tracks that were added or changed on a day.",
    (
        _PLATFORM,
        _DAY,
        _TRACK,
        Column("public_id", TEXT, "The track's public id.", pattern=UUID_PATTERN),
        Column("merged_into", INT64, "The track that replaced it; chains are not yet followed.", nullable=True, minimum=1),
    ),
    primary_key=("fingerprint_track_id",),
)

SOURCE_FINGERPRINT_MEMBER = Table(
    "source_fingerprint_member",
    "staging",
    "The fingerprints of each fingerprint track, as stated on a day.",
    (
        _PLATFORM,
        _DAY,
        Column("fingerprint_id", INT64, "The fingerprint.", minimum=1),
        _TRACK,
        Column("submission_count", INT32, "How often users sent it in.", minimum=0, maximum=LARGEST_COUNT),
    ),
    primary_key=("fingerprint_id",),
)

SOURCE_FINGERPRINT_LINK = Table(
    "source_fingerprint_link",
    "staging",
    "The catalog_b recording that users name for a fingerprint track, as of a day; several rows may have one pair.",
    (
        _PLATFORM,
        _DAY,
        Column("link_id", INT64, "Id of the row in the source.", minimum=1),
        _TRACK,
        Column("external_id", TEXT, "The catalog_b recording id, which may have been merged into another.", pattern=UUID_PATTERN),
        Column("submission_count", INT32, "How often users stated this.", minimum=0, maximum=LARGEST_COUNT),
        Column("is_disabled", BOOL, "True if users withdrew it; it does not count."),
    ),
    primary_key=("link_id",),
)

SOURCE_FINGERPRINT_META = Table(
    "source_fingerprint_meta",
    "staging",
    "Titles that users submitted with fingerprints. They help a person to see why a track is linked.",
    (
        _PLATFORM,
        _DAY,
        Column("meta_id", INT64, "Id of the row in the source.", minimum=1),
        Column("title", TEXT, "Title as typed.", nullable=True, longest=LONGEST_NAME),
        Column("artist", TEXT, "Artist as typed.", nullable=True, longest=LONGEST_NAME),
        Column("album", TEXT, "Album as typed.", nullable=True, longest=LONGEST_NAME),
        Column("year", INT32, "Year as typed.", nullable=True, minimum=-9_999, maximum=9_999),
    ),
    primary_key=("meta_id",),
)

SOURCE_AUDIO_FILE = Table(
    "source_audio_file",
    "staging",
    "Audio files of an operator and the recordings that the mapping file assigns to them.",
    (
        Column("platform", TEXT, "The source.", values=(AUDIO,)),
        Column("path", TEXT, "The file, below the folder of the source.", longest=LONGEST_PATH),
        Column(
            "fingerprint_id", INT64, "Its fingerprint: files of the same content have one.", references="source_fingerprint.fingerprint_id"
        ),
        Column("isrc", TEXT, "The recording's code, where mapped by it.", True, pattern=ISRC_PATTERN),
        Column("target_platform", TEXT, "Platform of `external_id`, where mapped by record.", True, values=CATALOG_PLATFORMS),
        Column("external_id", TEXT, "The record.", nullable=True, longest=LONGEST_ID),
    ),
    primary_key=("path",),
)

STAGED_OF_FINGERPRINTS = {
    FINGERPRINTS: (
        SOURCE_FINGERPRINT,
        SOURCE_FINGERPRINT_TRACK,
        SOURCE_FINGERPRINT_MEMBER,
        SOURCE_FINGERPRINT_LINK,
        SOURCE_FINGERPRINT_META,
    ),
    AUDIO: (SOURCE_FINGERPRINT, SOURCE_LANDMARK, SOURCE_AUDIO_FILE),
}
"""The staging tables of each source of fingerprints, besides `reject` and `intake`."""
FINGERPRINT_STAGING_TABLES = (*STAGED_OF_FINGERPRINTS[FINGERPRINTS], SOURCE_LANDMARK, SOURCE_AUDIO_FILE)

RECORDING_FINGERPRINT = Table(
    "recording_fingerprint",
    "catalog",
    "The fingerprints by which a clip of a recording is identified; the recognition index holds their items.",
    (
        Column("recording_id", INT64, "The recording.", references="recording.recording_id"),
        Column("position", INT16, "Order among the recording's fingerprints, from 0; the first is the best supported one.", minimum=0),
        Column("fingerprint_key", INT64, "The fingerprint in the recognition index."),
        Column("fingerprint_id", INT64, f"Its id in the source; negative for {AUDIO}."),
        Column("source", TEXT, "The source.", values=FINGERPRINT_SOURCES),
        Column("duration_seconds", INT32, "Length of the audio that it was made of.", minimum=1),
        Column("submission_count", INT32, "How often users sent it in; 1 for an operator's own file.", minimum=0),
        Column("fingerprint_track_id", INT64, f"The source's track, merges followed; null for {AUDIO}.", nullable=True),
        Column("link_count", INT32, "How often users said that the track is this recording; 1 for an operator's own file.", minimum=0),
    ),
    primary_key=("recording_id", "position"),
)

FINGERPRINT_CONFLICT = Table(
    "fingerprint_conflict",
    "catalog",
    "A refused claim of a recording to a fingerprint track or an operator's file.",
    (
        Column("source", TEXT, "The source.", values=FINGERPRINT_SOURCES),
        Column("fingerprint_track_id", INT64, f"The track; {AUDIO}: the fingerprint id."),
        Column("recording_id", INT64, "The recording that did not get it.", references="recording.recording_id"),
        Column("winner_recording_id", INT64, "The recording that got it, if any.", nullable=True, references="recording.recording_id"),
        Column("link_count", INT32, "How often users stated this.", minimum=0),
        Column("winner_link_count", INT32, "The same for the recording that got it.", nullable=True, minimum=0),
        Column(
            "duration_gap_seconds", INT32, "How far track and recording differ in length, where both are known.", nullable=True, minimum=0
        ),
        Column("reason", TEXT, "Fewer users name it, or its length differs.", values=("outvoted", "duration")),
    ),
    primary_key=("source", "fingerprint_track_id", "recording_id"),
)

FINGERPRINT_TABLES = (RECORDING_FINGERPRINT, FINGERPRINT_CONFLICT)
