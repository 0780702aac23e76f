"""One delivered CSV or TSV file -> a table of a DuckDB connection, every column as text, with the number of each record in the file.

A record that does not fit is a reject. Compressed files are unpacked first: DuckDB does not compare their checksums.
Out of scope: what a column means.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl

from catalog_store.sql_text import quote_text
from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.compressed_files import DumpFile, detect_packing, read_blocks
from pipeline.dumps.staging.layout_expectations import Expected
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.dumps.staging.staging_writer import StagingWriter

_LONGEST_HEADING = 128 << 10
"""Characters of the name of a column. Without a limit, a file without line ends would be one name, and the error would show it."""
_REASONS = {
    "MISSING COLUMNS": Reason.WRONG_COLUMN_COUNT,
    "TOO MANY COLUMNS": Reason.WRONG_COLUMN_COUNT,
    "INVALID ENCODING": Reason.INVALID_UTF8,
    "LINE SIZE OVER MAXIMUM": Reason.TOO_LARGE,
}


@dataclass(frozen=True)
class CsvTable:
    """A table that was read: `name` in DuckDB, `gaps`: for each record that did not fit, how many good ones come before it."""

    name: str
    source_file: str
    gaps: NDArray[np.int64]

    def locate_rows(self, block: pl.DataFrame) -> pl.DataFrame:
        """Return rows with `source_file` and `place`, the record number in the file with rejected ones counted, instead of `position`."""
        position = block["position"].to_numpy()
        # `position` counts good records only. Each rejected record before it shifts the number in the file by one.
        numbers = position + np.searchsorted(self.gaps, position - 1, side="right")
        place = pl.format("record {}", pl.Series("number", numbers))
        return block.drop("position").with_columns(source_file=pl.lit(self.source_file), place=place)


@dataclass(frozen=True)
class CsvForm:
    """`columns`: our name of a column -> the names it may have in the file, the first found counts. `required`: those it must have."""

    columns: Mapping[str, Sequence[str]]
    required: Sequence[str]
    entity: str
    notes: str
    """The page that describes the format, for errors."""
    numbers: Sequence[str] = ()
    """Columns of whole numbers, ids for one: data frames with gaps in such a column write `12.0`, which is 12."""
    optional: Sequence[str] | None = None
    """Columns whose absence is reported; by default all that are not required."""
    part: str | None = None
    """Name of the table in errors about its columns; by default its name in DuckDB."""
    ignored: Sequence[str] = ()
    """Columns of the file that are known and not read."""

    @property
    def expected(self) -> Expected:
        """Return the columns with which the heading is compared, under the names of the file."""
        wanted = [column for column in self.columns if column not in self.required]
        # A column that few exports have is known without being missed.
        reported = wanted if self.optional is None else self.optional
        others = [name for column in wanted if column not in reported for name in self.columns[column]]
        required, optional = ({self.columns[c][0]: self.columns[c][1:] for c in columns} for columns in (self.required, reported))
        return Expected(required, optional, (*self.ignored, *others))


def create_empty_table(connection: duckdb.DuckDBPyConnection, name: str, form: CsvForm) -> CsvTable:
    """Create the table of a file that is not there."""
    connection.execute(f"CREATE TABLE {name} (position BIGINT, {', '.join(f'{column} VARCHAR' for column in form.columns)})")
    return CsvTable(name, "", np.empty(0, dtype=np.int64))


def load_table(
    connection: duckdb.DuckDBPyConnection, name: str, form: CsvForm, path: Path, source_file: str, scratch: Path, out: StagingWriter
) -> CsvTable:
    """Create table `name`: `position` (from 1, of the records that fit) and the columns of `form` as text, null where the file has none.

    A `.tsv` file has tabs and no quotes, any other commas and double quotes. DumpError when a required column is missing or the file
    cannot be read.
    """
    delimiter, quote = ("\t", "") if ".tsv" in path.name.lower() else (",", '"')
    plain = _make_readable(path, scratch)
    try:
        header = _read_header(plain, delimiter, quote)
    except csv.Error as error:
        raise DumpError(f"{path}: the heading cannot be read ({error}); fetch it again") from error
    # Reversed, so that the first of two equal headings wins.
    place = {name.lower(): index for index, name in reversed(list(enumerate(header)))}
    # Columns are named by their places: data frames write an index without a heading, and headings may repeat.
    chosen = {
        column: next((f"c{place[name.lower()]}" for name in names if name.lower() in place), None) for column, names in form.columns.items()
    }
    out.use(path)
    out.expect(form.part or f"table {name}", list(filter(None, header)), form.expected, place=path)
    # The `.0` goes here and not later, because tables are joined by these columns.
    read = {column: "regexp_replace(trim({}), '^([0-9]+)[.]0+$', '\\1')" if column in form.numbers else "{}" for column in chosen}
    picked = ", ".join(f"{read[column].format(known) if known else 'NULL::VARCHAR'} AS {column}" for column, known in chosen.items())
    typed = ", ".join(f"c{index}: 'VARCHAR'" for index in range(len(header)))
    try:
        connection.execute(
            f"""
            CREATE TABLE {name} AS SELECT row_number() OVER () AS position, {picked} FROM read_csv({quote_text(str(plain))}, header = true,
                auto_detect = false, compression = 'none', delim = {quote_text(delimiter)}, quote = {quote_text(quote)},
                escape = {quote_text(quote)},
                columns = {{{typed}}}, store_rejects = true, rejects_table = '{name}_errors', rejects_scan = '{name}_scan')
            """
        )
    except duckdb.Error as error:
        raise DumpError(f"{path}: cannot be read as CSV ({str(error).splitlines()[0]}); fetch it again") from error
    return CsvTable(name, source_file, _reject_errors(connection, name, form.entity, source_file, out))


def _reject_errors(
    connection: duckdb.DuckDBPyConnection, name: str, entity: str, source_file: str, out: StagingWriter
) -> NDArray[np.int64]:
    """Reject each record that DuckDB could not read. Its line counts records, the header being the first."""
    rows = connection.execute(
        # DuckDB may report one line several times, once per fault: one record is one reject.
        f"SELECT line, min(error_type::VARCHAR), any_value(csv_line) FROM {name}_errors GROUP BY line ORDER BY line"
    ).fetchall()
    out.count_read(entity, len(rows))
    for line, error, text in rows:
        reason = _REASONS.get(error, Reason.BROKEN_RECORD)
        out.reject(entity, reason, source_file=source_file, place=f"record {line - 1}", excerpt=text)
    # Line 1 is the heading. Taking away the faults before it leaves how many good records come before each.
    return np.array([line - 2 - index for index, (line, _, _) in enumerate(rows)], dtype=np.int64)


def _make_readable(path: Path, scratch: Path) -> Path:
    """Return a file that DuckDB reads as it is: the delivered one, or an unpacked copy whose lines end in LF."""
    # DuckDB can unpack gzip itself but does not compare its checksum: a damaged file would lose its end silently. Of a file that has both
    # CR LF and LF it silently loses records, or rejects all of one kind.
    if detect_packing(path) == "plain" and not any(b"\r" in block for block in read_blocks(path)):
        return path
    copy = scratch / "readable.csv"
    with copy.open("wb") as file:
        held = b""
        for block in read_blocks(path):
            text = held + block
            held = text[-1:] if text.endswith(b"\r") else b""
            file.write(text.removesuffix(b"\r").replace(b"\r\n", b"\n"))
        file.write(held)
    return copy


def _read_header(path: Path, delimiter: str, quote: str) -> list[str]:
    with DumpFile(path) as file:
        # `utf-8-sig`, because spreadsheets write a byte order mark, which would become part of the first name.
        head = io.StringIO(file.read(1 << 20).decode("utf-8-sig", "replace"), newline="")
    names = next(csv.reader(head, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE), [])
    # The reader has such a limit, too, but any code of the process may move it.
    if any(len(name) > _LONGEST_HEADING for name in names):
        raise csv.Error(f"a name has more than {_LONGEST_HEADING} characters")
    return [name.strip() for name in names]
