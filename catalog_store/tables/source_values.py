"""The values of the sources: every source record beside its recording, and every rejected value. No staging table is needed for them.

Wide: one row per source record, a column per field. `recordings.py` has the values that the catalog chose, `provenance.py` the choices.
"""

from __future__ import annotations

import pyarrow as pa

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables.spec import DATE, INT32, INT64, TEXT, TEXT_LIST, Column, Table
from catalog_store.tables.staging import CREDITED_ARTIST, DATE_PRECISIONS, REJECT

RECORDING_SOURCE = Table(
    "recording_source",
    "catalog",
    "The values that each platform gives a recording: one row per source record, as delivered.",
    (
        Column("recording_id", INT64, "The recording.", references="recording.recording_id"),
        Column("platform", TEXT, "Platform key.", values=CATALOG_PLATFORMS),
        Column("external_id", TEXT, "Id of the source record."),
        Column("title", TEXT, "Title, without `version` where the platform keeps that apart."),
        Column("version", TEXT, "Version words that the platform keeps apart from the title.", nullable=True),
        Column("artist_credit", TEXT, "Artists as one display string.", nullable=True),
        Column("artists", pa.list_(CREDITED_ARTIST), "Credited artists in order: the platform's id, the name, the role."),
        Column("isrcs", TEXT_LIST, "Well-formed ISRCs, sorted."),
        Column("duration_ms", INT32, "Duration in milliseconds.", nullable=True, minimum=1),
        Column("release_date", DATE, "The record's own date, else that of its release; unknown parts are 1.", nullable=True),
        Column("release_date_precision", TEXT, "The known part of the date.", nullable=True, values=DATE_PRECISIONS),
        Column("release_date_entity", TEXT, "Whether the record or its release gave the date.", True, values=("recording", "release")),
        Column("release_id", TEXT, "The release that the record names, else the first id of those that list it.", nullable=True),
        Column("release_title", TEXT, "Title of that release.", nullable=True),
        Column("label_name", TEXT, "Label of that release.", nullable=True),
        Column("genres", TEXT_LIST, "Genre strings of the record, in the platform's order."),
        Column("release_genres", TEXT_LIST, "Genre strings of that release, in the platform's order."),
    ),
    primary_key=("recording_id", "platform", "external_id"),
)

SOURCE_REJECT = Table(
    "source_reject",
    "catalog",
    "Records and values that staging rejected, of all platforms, with value, place and reason.",
    REJECT.columns,
    sort_key=tuple(column.name for column in REJECT.columns),
)

SOURCE_VALUE_TABLES = (RECORDING_SOURCE, SOURCE_REJECT)
