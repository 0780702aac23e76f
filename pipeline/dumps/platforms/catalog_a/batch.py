"""Result of one block of records, which a worker process sends back: rows to stage, rejects, and the number of records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.dumps.platforms.catalog_a.xml_extraction import BrokenRecord, Extraction

ID_SHAPE = r"^[1-9][0-9]{0,8}$"
"""Ids are counted up from 1: 40 million releases in 2026. The bound keeps the memory of the ids seen flat."""

REJECT = dict.fromkeys(("entity", "severity", "reason", "source_file", "place", "record_id", "field", "value", "excerpt"), pl.String)


@dataclass
class Batch:
    """`frames` and `read` (records seen) by staging table, `rejects` with the columns REJECT, the `records` (record_id, place) staged."""

    source_file: str
    records: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema={"record_id": pl.String, "place": pl.String}))
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    rejects: list[pl.DataFrame] = field(default_factory=list)
    read: dict[str, int] = field(default_factory=dict)

    def reject_broken(self, entity: str, broken: Iterable[BrokenRecord]) -> None:
        """Reject records that are not XML, with their place and beginning."""
        rows = [(record.reason.value, f"byte {record.offset}", record.message, record.excerpt) for record in broken]
        if rows:
            frame = pl.DataFrame(rows, schema=["reason", "place", "value", "excerpt"], orient="row")
            self._add(frame.with_columns(entity=pl.lit(entity), severity=pl.lit("row")))

    def reject_rows(self, entity: str, reason: Reason, frame: pl.DataFrame, record_id: str, value: pl.Expr) -> None:
        """Reject whole records: `frame` with `place` and the column `record_id`."""
        columns = {"entity": pl.lit(entity), "severity": pl.lit("row"), "reason": pl.lit(reason.value)}
        self._add(frame.select("place", record_id=pl.col(record_id).replace("", None), value=value, **columns))

    def reject_values(self, entity: str, reason: Reason, frame: pl.DataFrame, record_id: str, field: str, value: pl.Expr) -> None:
        """Reject values of staged records: `frame` with `place` and the column `record_id`."""
        columns = {"entity": pl.lit(entity), "severity": pl.lit("field"), "reason": pl.lit(reason.value), "field": pl.lit(field)}
        self._add(frame.select("place", record_id=pl.col(record_id), value=value, **columns))

    def _add(self, frame: pl.DataFrame) -> None:
        if frame.height:
            absent = [pl.lit(None, dtype=pl.String).alias(name) for name in REJECT if name not in frame.columns]
            self.rejects.append(frame.with_columns(absent).with_columns(source_file=pl.lit(self.source_file)).select(*REJECT))


def select_sound_records(
    frame: pl.DataFrame, entity: str, id_column: str, name_column: str, extraction: Extraction, batch: Batch
) -> pl.DataFrame:
    """Return the records that can be staged, with `owner` (number in the block) and `place`. Rejects the others and counts all.

    A record must have an id (once in the block) and a name; a no-break space is not a name.
    """
    batch.read[entity] = frame.height + len(extraction.broken)
    record_id = pl.col(id_column).str.strip_chars()
    frame = frame.with_columns(
        record_id.alias(id_column),
        owner=pl.int_range(pl.len(), dtype=pl.UInt32),
        place=pl.Series([f"byte {offset}" for offset in extraction.offsets], dtype=pl.String),
    )
    rules = (
        # The order matters: a faulty record leaves before repeated ids are looked for, so it does not reject a sound one.
        (Reason.MISSING_ID, pl.col(id_column).is_in(["", "0"]), pl.col(name_column)),
        (Reason.INVALID_ID, ~pl.col(id_column).str.contains(ID_SHAPE), pl.col(id_column)),
        (Reason.MISSING_TITLE, pl.col(name_column).str.strip_chars() == "", pl.lit(None, dtype=pl.String)),
        (Reason.DUPLICATE_ID, ~pl.col(id_column).is_first_distinct(), pl.col(name_column)),
    )
    for reason, fails, value in rules:
        out = frame.filter(fails)
        if out.height:
            batch.reject_rows(entity, reason, out, id_column, value)
            frame = frame.filter(~pl.col("owner").is_in(out["owner"].implode()))
    batch.records = frame.select("place", record_id=id_column)
    return frame
