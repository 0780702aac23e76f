"""Writer of the staging tables of one platform: tables, rejects and counts, published together.

An adapter gets a `StagingWriter`. It counts the records that it reads with `read`, hands over frames with `write`, and reports what it
leaves out with `reject` or `write_rejects`. Nothing becomes visible before the platform is complete. Closing fails if the counts do not
balance.
"""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Self

import polars as pl

from catalog_store.current_link import flush, flush_folder
from catalog_store.frame_texts import copy_texts
from catalog_store.pending_files import PENDING_SUFFIX
from catalog_store.record_keys.content_hash import compute_content_hash
from catalog_store.record_keys.new_records import NewRecords
from catalog_store.record_keys.place_numbers import write_place_numbers
from catalog_store.tables import STAGED_TABLES, TABLES
from catalog_store.tables.files import TableWriter
from pipeline.dumps.errors import UnblamedError
from pipeline.dumps.fields.delivered_credits import remove_blank_ids
from pipeline.dumps.fields.texts import clean_texts
from pipeline.dumps.staging.column_bounds import apply_bounds
from pipeline.dumps.staging.layout_expectations import MemberCensus, count_tables, count_tags, require_columns
from pipeline.dumps.staging.parsed_lines import ParsedLines
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.dumps.staging.staging_profile import Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    from pipeline.dumps.staging.layout_expectations import Expected

VERSION_FILE = "version.txt"
"""File beside the tables with a text that is new each time they are written."""
VALUE_CHARACTERS = 200
EXCERPT_CHARACTERS = 500
ROWS_PER_PART = 250_000
"""Rows that are gathered before a part is written: small parts cost every later scan, and parts of 500,000 took .2 GB more of memory."""
GROUPS_PER_PART = 50
"""Row groups of a part. Tables of wide rows have small groups, so their parts stay small in memory."""


class UnbalancedIntakeError(Exception):
    """Rows read are not rows staged plus rows rejected: an adapter lost records."""


class StagingWriter:
    """Staging tables of one platform under `folder`, one sub-folder per table."""

    def __init__(self, platform: str, folder: Path, report: Callable[[str], None] = lambda _line: None) -> None:
        """Prepare a writer for `folder`; `report` gets progress, one line of text at a time."""
        self.platform = platform
        self.folder = folder
        self._report = report
        self._stack = ExitStack()
        self._writers: dict[str, TableWriter] = {}
        self._waiting: dict[str, list[pl.DataFrame]] = {}
        self._waiting_rows: Counter[str] = Counter()
        self._rejects: list[dict[str, str | None]] = []
        self.first_reject: str | None = None
        """File, place and reason of the first rejected record, for the message when nothing could be staged."""
        self._read: Counter[str] = Counter()
        self._staged: Counter[str] = Counter()
        self._rejected: Counter[tuple[str, str]] = Counter()
        self.profile = Profile()
        """Counts of what has been staged so far."""
        self.used: set[Path] = set()
        """Files of the dump that are read."""

    def __enter__(self) -> Self:
        """Open a writer per staging table in a pending folder."""
        self._pending = self.folder.with_name(self.folder.name + PENDING_SUFFIX)
        # A killed run leaves its pending folder; nothing in it was published.
        shutil.rmtree(self._pending, ignore_errors=True)
        # Before NewRecords looks at the tables staged last: it compares this dump with them.
        restore_staging(self.folder)
        self._new_records = NewRecords(self.folder)
        self.parsed_lines = ParsedLines(self.folder, self._pending)
        for table in STAGED_TABLES[self.platform]:
            writer = TableWriter(table, self._pending / table.name)
            self._writers[table.name] = self._stack.enter_context(writer)
        return self

    def report(self, line: str) -> None:
        """Report progress."""
        self._report(f"{self.platform}: {line}")

    def use(self, *files: Path) -> None:
        """Record which files of the dump are read; the others are reported as unread."""
        self.used.update(files)

    def expect(self, part: str, delivered: Iterable[str], columns: Expected, *, place: object) -> None:
        """Compare the heading of one part of the dump with `columns`. Raises DumpError when a required column is missing."""
        require_columns(self.profile, part, delivered, columns, place=place, notes=f"docs/reference/formats/{self.platform}.md")

    def expect_tables(self, part: str, delivered: Mapping[str, int], tables: Iterable[str]) -> None:
        """Record how many rows each table of a delivery holds, so that the next build notices one that is gone."""
        count_tables(self.profile, part, delivered, tables)

    def count_tags(self, part: str, sample: bytes, record: bytes, known: Collection[str], usual: Collection[str] = ()) -> None:
        """Count the elements in a sample of one part that is XML."""
        count_tags(self.profile, part, sample, record, known, usual)

    def start_census(
        self, part: str, columns: Mapping[str, str], ignored: Collection[str] = (), usual: Collection[str] = ()
    ) -> MemberCensus:
        """Return a counter for the members of the records of one part of the dump."""
        return MemberCensus(self.profile, part, columns, ignored, usual)

    def warn(self, line: str) -> None:
        """Record an oddity of a readable dump for log, report and Dagster."""
        self.profile.warnings.append(line)

    def count_read(self, entity: str, rows: int = 1) -> None:
        """Count `rows` records of the dump that belong to the staging table `entity`."""
        self._read[TABLES[entity].name] += rows

    def write(self, entity: str, frame: pl.DataFrame) -> None:
        """Stage rows. Adds the `platform` column; absent nullable columns become null.

        `frame` should have `source_file` and `place` (where each row is): values beyond the bounds of the table are rejected here.
        """
        # Bounds come before `conform`: its casts fail for the whole frame on the first number that is too large.
        frame, rejects = apply_bounds(TABLES[entity], frame)
        for found in rejects:
            self.write_rejects(found)
        # Texts are cleaned before they are hashed: a control character that comes or goes does not change a record.
        frame = clean_texts(remove_blank_ids(TABLES[entity].conform(frame.with_columns(platform=pl.lit(self.platform)))))
        if entity == "source_recording":
            frame = frame.with_columns(content_hash=compute_content_hash())
        self._staged[entity] += frame.height
        self.profile.add(entity, frame)
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
        """Record one reject: of a value when `field` is named (the record itself is staged), else of the whole record.

        For a record that is rejected because of one field, pass the value in `value` without `field`, or use `write_rejects`.
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
        # Rejects wait as Python dicts, which take more memory than rows of a frame.
        if len(self._rejects) >= ROWS_PER_PART // 10:
            self._flush_rejects()

    def reject_doubled(self, entity: str, table: str, rows: int) -> None:
        """Reject `rows` repeated rows of a table of relations as one reject, because such rows have no id."""
        if rows:
            self.reject(entity, Reason.DOUBLED_ROW, source_file=table, place="whole table", field=table, value=f"{rows} rows")

    def reject_keyless(self, entity: str, table: str, key: str, rows: int) -> None:
        """Reject `rows` of a table of relations that have no (readable) `key` as one reject, and warn: they relate nothing."""
        if rows:
            value = f"{rows} rows without a key"
            self.reject(entity, Reason.DANGLING_REFERENCE, source_file=table, place="whole table", field=key, value=value)
            self.warn(f"table {table}: {rows} rows have no {key}, so they relate nothing")

    def write_rejects(self, frame: pl.DataFrame) -> None:
        """Record many rejects at once: columns of `reject` except `platform`; absent nullable ones become null."""
        if frame.is_empty():
            return
        frame = frame.with_columns(platform=pl.lit(self.platform))
        # Cut first: an id of a megabyte would break the bound of the reject that reports it.
        frame = TABLES["reject"].conform(_cut_texts(frame))
        self.first_reject = self.first_reject or "{source_file}, {place}: {reason}".format(**frame.row(0, named=True))
        for entity, severity, rows in frame.group_by("entity", "severity").len().iter_rows():
            self._rejected[entity, severity] += rows
        # Half a million rejects wait for their part. With the texts of their blocks they took 1 GB for 6,000 rejects of each block.
        self._gather("reject", copy_texts(frame))

    def _flush_rejects(self) -> None:
        if self._rejects:
            schema = {name: pl.String for name in TABLES["reject"].column_names if name != "platform"}
            frame = pl.DataFrame(self._rejects, schema=schema).with_columns(platform=pl.lit(self.platform))
            self._gather("reject", TABLES["reject"].conform(_cut_texts(frame)))
            self._rejects = []

    def _gather(self, entity: str, frame: pl.DataFrame) -> None:
        self._waiting.setdefault(entity, []).append(frame)
        self._waiting_rows[entity] += frame.height
        if self._waiting_rows[entity] >= min(ROWS_PER_PART, GROUPS_PER_PART * TABLES[entity].rows_per_group):
            self._write_waiting(entity)

    def _write_waiting(self, entity: str) -> None:
        self._waiting_rows[entity] = 0
        if entity in self._waiting:
            # In one piece before the part is written: the writer would make a second copy beside the pieces.
            rows = pl.concat(self._waiting.pop(entity), rechunk=True)
            with self._translate_write_errors():
                # The numbers are written while the rows are in memory: a night then finds changed places without reading and joining all
                # tracks.
                if (part := self._writers[entity].write(rows)) is not None:
                    write_place_numbers(self._pending, entity, part, rows)
            if entity == "source_recording":
                self._new_records.gather(rows)

    @property
    def is_fruitless(self) -> bool:
        """Return whether no counted record was staged, or no recording although some were counted."""
        # Placeholders are staged without being read. They must not make an empty dump look fruitful.
        staged = {entity: self._staged[entity] for entity, read in self._read.items() if read}
        return not any(staged.values()) or staged.get("source_recording") == 0

    def build_intake(self) -> pl.DataFrame:
        """Return the counts so far: one row of the `intake` table per counted entity."""
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
        """Publish all tables of the platform at once. Raises UnbalancedIntakeError when records were lost."""
        if kind is not None:
            # Writers learn of the error, so that none of them completes its table.
            self._stack.__exit__(kind, error, trace)
            shutil.rmtree(self._pending, ignore_errors=True)
            return
        try:
            self._finish()
            with self._translate_write_errors():
                self._stack.close()
                self._swap()
        except BaseException:
            # The block itself went well, but its tables must not be completed now.
            self._stack.__exit__(RuntimeError, RuntimeError("staging failed"), None)
            restore_staging(self.folder)
            shutil.rmtree(self._pending, ignore_errors=True)
            raise

    @contextmanager
    def _translate_write_errors(self) -> Iterator[None]:
        """Raise UnblamedError for any failure of the block: then this machine is at fault and not the dump."""
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as error:
            message = f"{self.platform}: cannot write below {self._pending}: {error}; look at the disk, then build again"
            raise UnblamedError(message) from error

    def _swap(self) -> None:
        retired = _name_retired(self.folder)
        shutil.rmtree(retired, ignore_errors=True)
        # The stamp beside the tables says that the dump need not be read again. So the tables must survive a loss of power.
        flush(self._pending)
        # Two renames, because a folder that is not empty cannot be replaced by one. A run killed between them is repaired by
        # `restore_staging`.
        if self.folder.exists():
            self.folder.rename(retired)
        self._pending.rename(self.folder)
        try:
            flush_folder(self.folder.parent)
        except OSError:
            # Power may still take the new name back. So the tables of before stay, as the error says.
            self.folder.rename(self._pending)
            raise
        shutil.rmtree(retired, ignore_errors=True)

    def _finish(self) -> None:
        self._flush_rejects()
        for entity in list(self._waiting):
            self._write_waiting(entity)
        books = self.build_intake()
        # The books are closed before the tables get their name: an adapter that loses records must not publish.
        lost = books.filter(pl.col("rows_read") != pl.col("rows_staged") + pl.col("rows_rejected"))
        if lost.height:
            message = f"{self.platform}: rows read are not rows staged + rows rejected: {lost.to_dicts()}"
            raise UnbalancedIntakeError(message)
        with self._translate_write_errors():
            self._writers["intake"].write(books)
            self._new_records.write(self._pending)
            self.parsed_lines.close()
            self.profile.write(self._pending)
            (self._pending / VERSION_FILE).write_text(uuid.uuid4().hex + "\n", encoding="ascii")


def _cut_texts(rejects: pl.DataFrame) -> pl.DataFrame:
    """Return rejects with texts cut to the bounds of the table. Ids and field names come from dumps, too, so they may be long."""
    bounds = {column.name: column.longest for column in TABLES["reject"].columns if column.longest and column.name in rejects.columns}
    return rejects.with_columns(pl.col(name).cast(pl.String).str.head(longest) for name, longest in bounds.items())


def restore_staging(folder: Path) -> None:
    """Restore tables that a run had put aside when it was killed, or failed, before the new ones had their name."""
    retired = _name_retired(folder)
    if retired.is_dir() and not folder.exists():
        retired.rename(folder)


def _name_retired(folder: Path) -> Path:
    return folder.with_name(folder.name + ".retired")
