"""The one way into staging: tables, rejects and the count of what was read, for one platform, published together.

An adapter is handed a `StagingWriter`, counts what it reads with `read`, hands over frames with `write` and says what it leaves out with
`reject` or `write_rejects`. Nothing becomes visible before the platform is complete, and closing refuses books that do not balance.
"""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

import polars as pl

from catalog_store.tables import STAGED_TABLES, TABLES
from catalog_store.tables.files import PENDING_SUFFIX, TableWriter
from pipeline.dumps.content_hash import content_hash
from pipeline.dumps.new_records import NewRecords
from pipeline.dumps.place_numbers import lay_down
from pipeline.dumps.texts import clean_texts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from pipeline.dumps.rejects import Reason

VALUE_CHARACTERS = 200
EXCERPT_CHARACTERS = 500
ROWS_PER_PART = 500_000
"""Frames are gathered to about this many rows before a part is written: small parts cost every later scan."""
GROUPS_PER_PART = 50
"""Of wide rows fewer: a part is gathered in memory."""


class UnbalancedIntakeError(Exception):
    """Rows read are not rows staged plus rows rejected: an adapter lost records silently."""


class StagingWriter:
    """Staging tables of one platform under `folder`, one sub-folder per table."""

    def __init__(self, platform: str, folder: Path, report: Callable[[str], None] = lambda _line: None) -> None:
        """`report` is told about progress, one line of text at a time."""
        self.platform = platform
        self.folder = folder
        self._report = report
        self._stack = ExitStack()
        self._writers: dict[str, TableWriter] = {}
        self._waiting: dict[str, list[pl.DataFrame]] = {}
        self._waiting_rows: Counter[str] = Counter()
        self._rejects: list[dict[str, str | None]] = []
        self.first_reject: str | None = None
        """File, place and reason of one record that was rejected, for who must say why nothing could be read."""
        self._read: Counter[str] = Counter()
        self._staged: Counter[str] = Counter()
        self._rejected: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> Self:
        """Open a writer per staging table, aside."""
        self._pending = self.folder.with_name(self.folder.name + PENDING_SUFFIX)
        shutil.rmtree(self._pending, ignore_errors=True)
        self._new_records = NewRecords(self.folder)
        for table in STAGED_TABLES[self.platform]:
            writer = TableWriter(table, self._pending / table.name)
            self._writers[table.name] = self._stack.enter_context(writer)
        return self

    def report(self, line: str) -> None:
        """Tell how far the reading has come."""
        self._report(f"{self.platform}: {line}")

    def read(self, entity: str, rows: int = 1) -> None:
        """Count `rows` records of `entity` (the staging table they belong to) as seen in the dump."""
        self._read[TABLES[entity].name] += rows

    def write(self, entity: str, frame: pl.DataFrame) -> None:
        """Stage rows; the `platform` column is added, absent nullable columns become null."""
        frame = clean_texts(TABLES[entity].conform(frame.with_columns(platform=pl.lit(self.platform))))
        if entity == "source_recording":
            frame = frame.with_columns(content_hash=content_hash())
        self._staged[entity] += frame.height
        self._gather(entity, frame)

    def reject(
        self,
        entity: str,
        reason: Reason,
        *,
        source_file: str,
        place: str,
        record_id: str | None = None,
        field: str | None = None,
        value: object = None,
        excerpt: str | None = None,
    ) -> None:
        """Record one reject: of a value when `field` is named and the record is staged all the same, else of the whole record.

        For a whole record that is rejected because of one field use `write_rejects` or pass the value in `value` without `field`.
        """
        severity = "row" if field is None else "field"
        self.first_reject = self.first_reject or f"{source_file}, {place}: {reason.value}"
        self._rejected[entity, severity] += 1
        self._rejects.append(
            {
                "entity": entity,
                "severity": severity,
                "reason": reason.value,
                "source_file": source_file,
                "place": place,
                "record_id": record_id,
                "field": field,
                "value": None if value is None else str(value)[:VALUE_CHARACTERS],
                "excerpt": None if excerpt is None else excerpt[:EXCERPT_CHARACTERS],
            }
        )
        if len(self._rejects) >= ROWS_PER_PART // 10:
            self._flush_rejects()

    def write_rejects(self, frame: pl.DataFrame) -> None:
        """Record many rejects at once: columns of the `reject` table except `platform` (absent nullable ones become null)."""
        if frame.is_empty():
            return
        frame = frame.with_columns(platform=pl.lit(self.platform))
        for name, limit in (("value", VALUE_CHARACTERS), ("excerpt", EXCERPT_CHARACTERS)):
            if name in frame.columns:
                frame = frame.with_columns(pl.col(name).cast(pl.String).str.slice(0, limit))
        frame = TABLES["reject"].conform(frame)
        self.first_reject = self.first_reject or "{source_file}, {place}: {reason}".format(**frame.row(0, named=True))
        for entity, severity, rows in frame.group_by("entity", "severity").len().iter_rows():
            self._rejected[entity, severity] += rows
        self._gather("reject", frame)

    def _flush_rejects(self) -> None:
        if self._rejects:
            schema = {name: pl.String for name in TABLES["reject"].column_names if name != "platform"}
            frame = pl.DataFrame(self._rejects, schema=schema).with_columns(platform=pl.lit(self.platform))
            self._gather("reject", TABLES["reject"].conform(frame))
            self._rejects = []

    def _gather(self, entity: str, frame: pl.DataFrame) -> None:
        self._waiting.setdefault(entity, []).append(frame)
        self._waiting_rows[entity] += frame.height
        if self._waiting_rows[entity] >= min(ROWS_PER_PART, GROUPS_PER_PART * TABLES[entity].rows_per_group):
            self._write_waiting(entity)

    def _write_waiting(self, entity: str) -> None:
        frames = self._waiting.pop(entity, [])
        self._waiting_rows[entity] = 0
        if frames:
            rows = pl.concat(frames)
            if (part := self._writers[entity].write(rows)) is not None:
                lay_down(self._pending, entity, part, rows)
            if entity == "source_recording":
                self._new_records.gather(rows)

    @property
    def is_fruitless(self) -> bool:
        """Whether nothing that was counted could be staged, or of recordings, if there were any, none."""
        staged = {entity: self._staged[entity] for entity, read in self._read.items() if read}
        return not any(staged.values()) or staged.get("source_recording") == 0

    def intake(self) -> pl.DataFrame:
        """The books so far: one row of the `intake` table per entity that was counted."""
        rows = [
            {
                "platform": self.platform,
                "entity": entity,
                "rows_read": read,
                "rows_staged": self._staged[entity],
                "rows_rejected": self._rejected[entity, "row"],
                "values_rejected": self._rejected[entity, "field"],
            }
            for entity, read in sorted(self._read.items())
        ]
        return TABLES["intake"].conform(pl.DataFrame(rows, schema=TABLES["intake"].polars_schema))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Publish all tables of the platform at once; UnbalancedIntakeError when records were lost."""
        try:
            if kind is None:
                self._finish()
        except BaseException:
            self._stack.__exit__(RuntimeError, RuntimeError("staging failed"), None)
            shutil.rmtree(self._pending, ignore_errors=True)
            raise
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            shutil.rmtree(self._pending, ignore_errors=True)
            return
        self._stack.close()
        retired = self.folder.with_name(self.folder.name + ".retired")
        shutil.rmtree(retired, ignore_errors=True)
        if self.folder.exists():
            self.folder.rename(retired)
        self._pending.rename(self.folder)
        shutil.rmtree(retired, ignore_errors=True)

    def _finish(self) -> None:
        self._flush_rejects()
        for entity in list(self._waiting):
            self._write_waiting(entity)
        books = self.intake()
        lost = books.filter(pl.col("rows_read") != pl.col("rows_staged") + pl.col("rows_rejected"))
        if lost.height:
            message = f"{self.platform}: rows read are not rows staged + rows rejected: {lost.to_dicts()}"
            raise UnbalancedIntakeError(message)
        self._writers["intake"].write(books)
        self._new_records.write(self._pending)
