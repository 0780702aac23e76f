"""Delivered tables of the composition data as Parquet in a work folder: read cells, normalised codes, and rejects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl

from catalog_store.identifiers import normalise_iswc_expr
from pipeline.dumps.errors import DumpError
from pipeline.dumps.fields.isrcs import read_isrc_lists
from pipeline.dumps.platforms.works.manifest import Listed, check_file, check_presence, read_manifest
from pipeline.dumps.platforms.works.work_layouts import (
    KINDS,
    LINKS,
    OPTIONAL_KINDS,
    RECORDINGS,
    TITLES,
    WORKS,
    Kind,
    Layout,
    detect_layout,
    find_files,
)
from pipeline.dumps.readers.compressed_files import DumpFile, name_unpacked
from pipeline.dumps.readers.tab_rows import RowBlock, read_rows
from pipeline.dumps.staging.record_checks import build_excerpt
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from pipeline.dumps.staging.staging_writer import StagingWriter

ENTITIES = {
    WORKS.name: "source_work",
    RECORDINGS.name: "source_work_recording",
    LINKS.name: "source_work_recording",
    TITLES.name: "source_work",
}

_DURATION = r"^P(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)$"
_ESCAPES = {r"\\|": "|", r"\|": "|", r"\\": "\\"}
"""Escapes of the family of standards: a literal `|` or `\\` in a text; the longest first."""
_MULTI = "|"
_ADDED = ("file", "line", "isrcs", "iswcs", "duration_ms")
"""Columns that are not cells of the record. Excerpts leave them out."""
_LONGEST_MS = 2**31 - 1


@dataclass(frozen=True)
class _File:
    path: Path
    number: int
    kind: Kind
    layout: Layout


def unpack(dump: Path, work: Path, out: StagingWriter) -> None:
    """Write `<work>/{works,recordings,links,titles}/part-*.parquet` in file order.

    Each row has `file` (its number), `source_file` and `line`.

    works: id, iswcs, title. recordings: id, isrcs, title, artist, duration_ms. links: work, recording. titles: work, title (no folder
    without such files). DumpError when the snapshot as a whole cannot be used.
    """
    folder, files = find_files(dump)
    manifest = read_manifest(folder)
    check_presence(folder, manifest)
    for kind in (*KINDS, *OPTIONAL_KINDS):
        for number, path in enumerate(files.get(kind.name, [])):
            try:
                file = _File(path, number, kind, detect_layout(path, kind))
            except DumpError as error:
                if kind in KINDS:
                    raise
                # Works and recordings can be read without their further titles.
                out.warn(f"{error}; the file is left out")
                continue
            out.use(path)
            if unnamed := file.layout.unnamed:
                out.warn(f"{path.name}: the heading names no {', '.join(unnamed)}; the cells are read by their places")
            _unpack_file(file, work / kind.name, manifest.get(name_unpacked(path.name)), out)


def _unpack_file(file: _File, folder: Path, listed: Listed | None, out: StagingWriter) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = int(file.layout.has_heading)
    with DumpFile(file.path) as stream:
        blocks = read_rows(cast("BinaryIO", stream), file.layout.cells, str(file.path), has_heading=file.layout.has_heading)
        for part, block in enumerate(blocks):
            _reject_lines(file, block.faults, out)
            rows = _read_cells(file, block)
            lines += rows.height + block.faults.height
            frame = _READERS[file.kind.name](rows, out)
            frame.write_parquet(folder / f"part-{file.number:03d}-{part:05d}.parquet", compression="zstd", compression_level=1)
    out.report(f"{file.path.name}: {lines:,} lines")
    check_file(file.path, listed, lines, has_heading=file.layout.has_heading)


def _read_cells(file: _File, block: RowBlock) -> pl.DataFrame:
    """Return the read fields as text, null where a cell is blank."""
    places = file.layout.places
    where = {"file": pl.lit(file.number, dtype=pl.Int32), "source_file": pl.lit(file.path.name), "place": pl.format("line {}", "line")}
    if not block.content:
        empty = pl.DataFrame(schema={"line": pl.Int64, **dict.fromkeys(places, pl.String)})
        return empty.with_columns(**where)
    names = [f"cell_{index}" for index in range(file.layout.cells)]
    cells = pl.read_csv(
        # Both line ends are allowed. The copy is made only for files that have the other one.
        block.content.replace(b"\r\n", b"\n") if b"\r\n" in block.content else block.content,
        separator="\t",
        has_header=False,
        quote_char=None,
        schema=dict.fromkeys(names, pl.String),
        columns=sorted(set(places.values())),
    )
    fields = [pl.col(names[place]).str.strip_chars().alias(field) for field, place in places.items()]
    fields = [pl.when(field != "").then(field) for field in fields]
    return cells.select(block.lines.alias("line"), *fields).with_columns(**where)


def _reject_lines(file: _File, faults: pl.DataFrame, out: StagingWriter) -> None:
    if faults.height:
        entity = ENTITIES[file.kind.name]
        out.count_read(entity, faults.height)
        out.write_rejects(
            faults.select(
                "reason",
                "excerpt",
                entity=pl.lit(entity),
                severity=pl.lit("row"),
                source_file=pl.lit(file.path.name),
                place=pl.format("line {}", "line"),
            )
        )


def _read_works(rows: pl.DataFrame, out: StagingWriter) -> pl.DataFrame:
    entity = ENTITIES[WORKS.name]
    rows = _take_out(rows, entity, Reason.MISSING_ID, pl.col("id").is_null(), out)
    rows = _take_out(rows, entity, Reason.MISSING_TITLE, pl.col("title").is_null(), out)
    rows = rows.with_columns(iswcs=_split_iswcs(), title=_unescape("title"))
    # A cell may hold several codes; one wrong one costs itself and not the others.
    strange = pl.col("iswcs").list.eval(pl.element().is_null()).list.any().fill_null(value=False)
    _reject_values(rows, entity, "iswc", Reason.INVALID_ISWC, strange, out)
    return rows.select(
        "file", "source_file", "line", "id", "title", iswcs=pl.col("iswcs").list.drop_nulls().list.unique(maintain_order=True)
    )


def _read_recordings(rows: pl.DataFrame, out: StagingWriter) -> pl.DataFrame:
    entity = ENTITIES[RECORDINGS.name]
    rows = _take_out(rows, entity, Reason.MISSING_ID, pl.col("id").is_null(), out)
    codes = read_isrc_lists(rows["isrc"])
    rows = rows.with_columns(isrcs=codes["_isrcs"], duration_ms=parse_duration_ms(pl.col("duration")))
    _reject_values(rows, entity, "isrc", Reason.INVALID_ISRC, pl.lit(codes["_no_isrc"].is_not_null()), out)
    # Without a code and without a title nothing says which recording is meant; with a code a missing title is a blemish.
    rows = _take_out(rows, entity, Reason.MISSING_TITLE, pl.col("title").is_null() & (pl.col("isrcs").list.len() == 0), out)
    for mandatory in ("title", "artist"):
        _reject_values(rows, entity, mandatory, Reason.MISSING_VALUE, pl.col(mandatory).is_null(), out)
    _reject_values(
        rows, entity, "duration", Reason.INVALID_DURATION, pl.col("duration").is_not_null() & pl.col("duration_ms").is_null(), out
    )
    whole = pl.format("{} ({})", _unescape("title"), _unescape("subtitle"))
    title = pl.when(pl.col("subtitle").is_null()).then(_unescape("title")).otherwise(whole)
    return rows.select("file", "source_file", "line", "id", "isrcs", "duration_ms", title=title, artist=_unescape("artist"))


def _read_links(rows: pl.DataFrame, out: StagingWriter) -> pl.DataFrame:
    rows = _take_out(rows, ENTITIES[LINKS.name], Reason.MISSING_ID, pl.any_horizontal(pl.col("work", "recording").is_null()), out)
    return rows.select("file", "source_file", "line", "id", "work", "recording")


def _read_titles(rows: pl.DataFrame, out: StagingWriter) -> pl.DataFrame:
    rows = _take_out(rows, ENTITIES[TITLES.name], Reason.MISSING_ID, pl.col("work").is_null(), out)
    rows = _take_out(rows, ENTITIES[TITLES.name], Reason.MISSING_TITLE, pl.col("title").is_null(), out)
    return rows.select("file", "source_file", "line", "id", "work", title=_unescape("title"))


_READERS = {WORKS.name: _read_works, RECORDINGS.name: _read_recordings, LINKS.name: _read_links, TITLES.name: _read_titles}


def parse_duration_ms(value: pl.Expr) -> pl.Expr:
    """Return ISO 8601 times (`PT3M2S`, `PT182S`, `PT1H0M0.5S`) as milliseconds; null when unreadable or zero."""
    hours, minutes, seconds = (value.str.extract_groups(_DURATION).struct.field(str(group)) for group in (1, 2, 3))
    total = (
        hours.cast(pl.Float64).fill_null(0) * 3600
        + minutes.cast(pl.Float64).fill_null(0) * 60
        + seconds.str.replace(",", ".", literal=True).cast(pl.Float64).fill_null(0)
    ) * 1000
    return pl.when(total.is_between(1, _LONGEST_MS)).then(total.round()).cast(pl.Int32)


def _split_iswcs() -> pl.Expr:
    """Return the normalised codes of a cell as a list, null where one is wrong."""
    return pl.col("iswc").str.split(_MULTI).list.eval(normalise_iswc_expr(pl.element()))


def _reject_values(rows: pl.DataFrame, entity: str, field: str, reason: Reason, fails: pl.Expr, out: StagingWriter) -> None:
    bad = rows.filter(fails)
    out.write_rejects(_build_rejects(bad, entity, "field", reason).with_columns(bad[field].alias("value"), field=pl.lit(field)))


def _take_out(rows: pl.DataFrame, entity: str, reason: Reason, fails: pl.Expr, out: StagingWriter) -> pl.DataFrame:
    bad = rows.filter(fails)
    if bad.is_empty():
        return rows
    out.count_read(entity, bad.height)
    out.write_rejects(_build_rejects(bad, entity, "row", reason))
    return rows.filter(~fails)


def _build_rejects(bad: pl.DataFrame, entity: str, severity: str, reason: Reason) -> pl.DataFrame:
    return bad.select(
        "source_file",
        "place",
        entity=pl.lit(entity),
        severity=pl.lit(severity),
        reason=pl.lit(reason.value),
        record_id="id",
        excerpt=build_excerpt([name for name in bad.columns if name not in _ADDED]),
    )


def _unescape(column: str) -> pl.Expr:
    text = pl.col(column)
    # leftmost: the escape that starts first wins, and of those the longest, which comes first in the mapping.
    return pl.when(text.str.contains("\\", literal=True)).then(text.str.replace_many(_ESCAPES, leftmost=True)).otherwise(text)
