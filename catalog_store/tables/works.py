"""Compositions: ISWC to recordings and back, n:m."""

from __future__ import annotations

from catalog_store.tables.spec import INT64, TEXT, Column, Table
from catalog_store.tables.staging import ISWC_PATTERN

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
    ),
    primary_key=("iswc", "recording_id"),
)

WORK_TABLES = (WORK, WORK_RECORDING)
