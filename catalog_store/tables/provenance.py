"""Provenance: the source of each field of a golden record, and the reason for it.

Wide tables of ids beside `recording` and `release`. Add the columns of a field here when the build chooses it among sources, and a new
reason also in docs/design/build.md; a test compares the two. The values themselves do not belong here.
"""

from __future__ import annotations

from catalog_store.tables.spec import INT32, INT64, TEXT, Column, Table

TITLE_REASONS = ("only_platform", "priority", "majority", "last_resort")
ARTISTS_REASONS = ("only_platform", "priority", "last_resort")
DURATION_REASONS = ("only_platform", "median", "majority", "priority")
ISRC_REASONS = ("only_code", "most_platforms", "kept", "earliest_year", "alphabet")
RELEASE_DATE_REASONS = ("full_date", "older_year", "earliest")
POPULARITY_REASONS = ("best_rank", "breadth")
VARIANT_REASONS = ("agreed", "most_records")
"""Why a source was chosen, per field of `recording`; docs/design/build.md explains each."""


def _build_source_columns(field: str, reasons: tuple[str, ...] = (), agreed: str = "", *, nullable: bool = False) -> tuple[Column, ...]:
    """Return the columns that name the source of one field.

    They are platform and id, the reason if there are several, and how many sources agreed if that is counted.
    """
    named = (
        Column(f"{field}_platform", TEXT, f"Platform that gave `{field}`.", nullable),
        Column(f"{field}_external_id", TEXT, "Id of the record that gave it.", nullable),
    )
    why = (Column(f"{field}_reason", TEXT, "The reason for this choice.", nullable, values=reasons),) if reasons else ()
    return (*named, *why, *((Column(f"{field}_agreed", INT32, agreed, nullable, minimum=1),) if agreed else ()))


RECORDING_PROVENANCE = Table(
    "recording_provenance",
    "catalog",
    "The source of each field of a recording, and the reason; one row per recording. A source is null if its field is null.",
    (
        Column("recording_id", INT64, "The recording.", references="recording.recording_id"),
        *_build_source_columns("title", TITLE_REASONS, "Platforms that show exactly this title."),
        *_build_source_columns("artists", ARTISTS_REASONS),
        *_build_source_columns(
            "duration", DURATION_REASONS, "Platforms within seconds of it; the source is the nearest record.", nullable=True
        ),
        *_build_source_columns("isrc", ISRC_REASONS, "Platforms that give the code; the source is the first record.", nullable=True),
        Column("release_date_entity", TEXT, "Whether a recording or a release gave it.", True, values=("recording", "release")),
        *_build_source_columns("release_date", RELEASE_DATE_REASONS, "Platforms that give exactly this date.", nullable=True),
        *_build_source_columns("popularity", nullable=True),
        Column("popularity_reason", TEXT, "Whether any platform ranks it.", values=POPULARITY_REASONS),
        *_build_source_columns("variant", VARIANT_REASONS, "Source records of this variant; the source is the first of them."),
    ),
    primary_key=("recording_id",),
)

RELEASE_PROVENANCE = Table(
    "release_provenance",
    "catalog",
    "The platform release that gave each field of a release: the first of the field's chain with a value. Null if the field is null.",
    (
        Column("release_id", INT64, "The release.", references="release.release_id"),
        *_build_source_columns("title"),
        *_build_source_columns("artist"),
        *_build_source_columns("label", nullable=True),
        *_build_source_columns("catalog_number", nullable=True),
        *_build_source_columns("gtin", nullable=True),
        *_build_source_columns("release_date", nullable=True),
        *_build_source_columns("release_type", nullable=True),
    ),
    primary_key=("release_id",),
)

PROVENANCE_TABLES = (RECORDING_PROVENANCE, RELEASE_PROVENANCE)
