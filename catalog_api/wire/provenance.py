"""Why a track is what it is: who gave its fields and genres, which records were merged into it."""

from __future__ import annotations

import msgspec


class FieldProvenance(msgspec.Struct):
    """Who gave a field of a track, and why that source; `agreed` sources said the same (null where nothing is counted)."""

    field: str
    value: str | int | float | None
    source: str | None
    external_id: str | None
    reason: str | None
    agreed: int | None


class SourceRecord(msgspec.Struct):
    """A platform's record that was merged into the track."""

    source: str
    external_id: str


class GenreProvenance(msgspec.Struct):
    """Why a track has a genre: what `source` said of the `entity_kind`, and the rule that read it."""

    name: str
    source: str
    entity_kind: str
    said: str
    rule: str


class Provenance(msgspec.Struct):
    """Where a track comes from: its fields, its genres, and the records that were merged into it."""

    fields: list[FieldProvenance]
    genres: list[GenreProvenance]
    records: list[SourceRecord]
