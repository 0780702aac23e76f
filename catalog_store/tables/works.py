"""Compositions: ISWC to recordings and back, n:m, and the claims that were refused."""

from __future__ import annotations

from catalog_store.tables.spec import INT32, INT64, TEXT, TEXT_LIST, Column, Table
from catalog_store.tables.staging import ISRC_PATTERN, ISWC_PATTERN

CLAIM_KINDS = ("record", "isrc", "names")
"""By trust: a source links its own recording to the work; a composition row carries the recording's code; it has its title and artist."""
CLAIM_REASONS = ("title", "artist", "duration", "ambiguous", "outvoted")

WORK = Table(
    "work",
    "catalog",
    "One row per ISWC.",
    (
        Column("iswc", TEXT, "ISWC without separators.", pattern=ISWC_PATTERN),
        Column("title", TEXT, "Title of the work."),
    ),
    primary_key=("iswc",),
)

WORK_RECORDING = Table(
    "work_recording",
    "catalog",
    "Recordings of each work.",
    (
        Column("iswc", TEXT, "The work.", references="work.iswc"),
        Column("recording_id", INT64, "The recording.", references="recording.recording_id"),
        Column("kind", TEXT, "The strongest kind of claim; null when the builder did not record it.", nullable=True, values=CLAIM_KINDS),
    ),
    primary_key=("iswc", "recording_id"),
)

WORK_CONFLICT = Table(
    "work_conflict",
    "catalog",
    "A refused claim of composition data that a recording performs a work; the values are those of the closest row.",
    (
        Column("iswc", TEXT, "The work.", references="work.iswc"),
        Column("recording_id", INT64, "The recording.", references="recording.recording_id"),
        Column("kind", TEXT, "The kind of claim.", values=CLAIM_KINDS),
        Column(
            "reason",
            TEXT,
            "The reason for the refusal: the field that contradicts most, several artists under these names, or better supported works.",
            values=CLAIM_REASONS,
        ),
        Column("platforms", TEXT_LIST, "Platforms that made the claim; sorted."),
        Column("claim_count", INT32, "Distinct rows that make the claim.", minimum=1),
        Column("isrc", TEXT, "The claimed code; null for a claim without one.", nullable=True, pattern=ISRC_PATTERN),
        Column("claimed_title", TEXT, "Title that the row gives the recording.", nullable=True),
        Column("claimed_artist", TEXT, "Artist that the row gives it.", nullable=True),
        Column("claimed_duration_ms", INT32, "Duration that the row gives it.", nullable=True, minimum=1),
        Column("winner_iswc", TEXT, "The work that outvoted it.", nullable=True, references="work.iswc"),
    ),
    primary_key=("iswc", "recording_id"),
)

WORK_TABLES = (WORK, WORK_RECORDING, WORK_CONFLICT)
