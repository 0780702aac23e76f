"""A delivery of EPF tables (files in folders, `.tbz` or `.zip` archives, numbered parts) -> Parquet files of the columns that are read.

An archive is streamed member by member and never unpacked to disk. `song.isrc` and the like are in other tables, so tables are laid down
first and joined after (`epf_tables`).
"""

from __future__ import annotations

import re
import tarfile
import zipfile
import zlib
from collections import Counter
from typing import TYPE_CHECKING, BinaryIO, cast

import polars as pl
import pyarrow.parquet as pq

from catalog_store.folder_listing import list_folder, list_tree
from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.compressed_files import DumpFile
from pipeline.dumps.readers.epf import EpfFile
from pipeline.dumps.readers.tar_members import WholeMember
from pipeline.dumps.staging.layout_expectations import expect_names, split_names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

COLUMNS = {
    "song": [
        "song_id",
        "name",
        "title_version",
        "parental_advisory_id",
        "artist_display_name",
        "original_release_date",
        "itunes_release_date",
        "track_length",
    ],
    "collection": [
        "collection_id",
        "name",
        "title_version",
        "artist_display_name",
        "original_release_date",
        "itunes_release_date",
        "label_studio",
        "media_type_id",
        "is_compilation",
    ],
    "artist": ["artist_id", "name", "artist_type_id"],
    "artist_song": ["artist_id", "song_id"],
    "artist_collection": ["artist_id", "collection_id", "is_primary_artist"],
    "collection_song": ["collection_id", "song_id", "track_number", "volume_number"],
    "song_match": ["song_id", "isrc"],
    "collection_match": ["collection_id", "upc"],
    "genre": ["genre_id", "parent_id", "name"],
    "genre_artist": ["genre_id", "artist_id", "is_primary"],
    "genre_collection": ["genre_id", "collection_id", "is_primary"],
    "song_popularity_per_genre": ["song_id", "song_rank"],
    "parental_advisory": ["parental_advisory_id", "name"],
}
"""Columns that are read of each table."""
IGNORED = split_names("""
    export_date search_terms collection_display_name view_url copyright p_line preview_url preview_length artwork_url
    content_provider_name collection_type_id parental_advisory_id is_actual_artist role_id preorder_only is_primary* amg_track_id
    amg_album_id grid storefront_id genre_id
""")
"""Columns that the tables are known to have and that say nothing that the catalog keeps."""
READ_BY_PLACE = {"genre_artist", "genre_collection"}
"""Their last columns are spelled differently from source to source: the columns after `export_date` are taken in order."""
REQUIRED_TABLES = ("song",)
ENTITIES = {"song": "source_recording", "collection": "source_release", "artist": "source_artist"}
"""Tables of which every record counts; of the others a broken record costs a value."""
_ARCHIVES = (".tbz", ".tar", ".tbz2", ".tgz", ".bz2", ".gz", ".zst")
RECORDS_PER_PART = 1 << 40
"""More than any file holds: `position` = part and record number in one."""
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""Errors of damaged archives and members. The last two mean a zip that is encrypted or packed in another way."""
_TABLE_NAME = re.compile(r"^([a-z_]+?)[-_.]?\d*$")


def find_table_name(path: str) -> str | None:
    """Return the table that a file holds, by its name without digits; None when it is not read."""
    match = _TABLE_NAME.match(path.rsplit("/", 1)[-1])
    return match[1] if match and match[1] in COLUMNS else None


def has_epf_tables(dump: Path) -> bool:
    """Return whether the dump holds EPF files or archives."""
    return any(path.is_file() and (find_table_name(path.name) or path.suffix in (".tbz", ".zip")) for path in list_tree(dump))


def export(dump: Path, scratch: Path, out: StagingWriter) -> dict[str, list[Path]]:
    """Write the columns that are read below `scratch`, and the broken records to `out`: the files per table.

    Beside COLUMNS they hold `source_file`, `record` (its number in that file) and `position` (ascends through all files of the table).
    DumpError when a file or table is unusable.
    """
    parts: Counter[str] = Counter()
    for path, name, file in _read_members(dump):
        table = find_table_name(name)
        if table:
            parts[table] += 1
            out.use(path)
            try:
                _export_table(table, name, file, scratch, parts[table], out)
            except (*_DAMAGE, pl.exceptions.PolarsError) as error:
                raise DumpError(f"{dump / name}: damaged ({error}); fetch it again and compare its checksum") from error
            out.report(f"{name} is read")
    missing = [table for table in REQUIRED_TABLES if not parts[table]]
    if missing:
        raise DumpError(
            f"{dump}: no EPF table {', '.join(missing)} among {', '.join(sorted(parts)) or 'the files'}; deliver the missing archive"
        )
    return {table: list_folder(scratch, f"{table}-*.parquet") for table in sorted(parts)}


def _read_members(dump: Path) -> Iterator[tuple[Path, str, BinaryIO]]:
    """Yield (delivered file, name, content) of every file and archive member, in order of path."""
    for path in [path for path in list_tree(dump) if path.is_file()]:
        name = str(path.relative_to(dump))
        if path.suffix == ".zip":
            try:
                with zipfile.ZipFile(path) as archive:
                    for member in archive.infolist():
                        with archive.open(member) as file:
                            yield path, f"{name}/{member.filename}", cast("BinaryIO", file)
            except _DAMAGE as error:
                raise DumpError(f"{path}: damaged archive ({error}); fetch it again and compare its checksum") from error
        # `song.bz2` is a packed table, `itunes20261001.tbz` an archive of tables.
        elif path.suffix in _ARCHIVES and find_table_name(path.stem) is None:
            yield from ((path, inner, file) for inner, file in _read_tar_members(path, name))
        elif path.suffix in ("", *_ARCHIVES) and find_table_name(path.stem):
            with DumpFile(path) as plain:
                yield path, name.removesuffix(path.suffix) if path.suffix else name, cast("BinaryIO", plain)


def _read_tar_members(path: Path, name: str) -> Iterator[tuple[str, BinaryIO]]:
    try:
        with DumpFile(path) as packed, tarfile.open(fileobj=packed, mode="r|", tarinfo=WholeMember) as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is not None:
                    yield f"{name}/{member.name}", cast("BinaryIO", file)
            # The end of the archive is not the end of the file: only there the decompressor sees its last checksum.
            while packed.read(1 << 20):
                pass
    except tarfile.TarError as error:
        raise DumpError(f"{path}: damaged archive ({error}); fetch it again and compare its checksum") from error


def _export_table(table: str, name: str, file: BinaryIO, scratch: Path, part: int, out: StagingWriter) -> None:
    epf = EpfFile(file, name)
    wanted = COLUMNS[table]
    # Column 0 is always export_date.
    delivered = list(epf.header.columns[1 : len(wanted) + 1]) if table in READ_BY_PLACE else wanted
    if len(delivered) < len(wanted):
        raise DumpError(f"{name}: no column {wanted[-1]} among {', '.join(epf.header.columns)}; see docs/reference/formats/streamsvc_b.md")
    needed = delivered[:2] if table in READ_BY_PLACE else wanted
    out.expect(f"table {table}", epf.header.columns, expect_names(needed, (), IGNORED), place=name)
    # The writer needs the schema before the first block, and a table without records is a file, too.
    schema = (
        pl.Schema({**dict.fromkeys(wanted, pl.String), "record": pl.Int64, "source_file": pl.String, "position": pl.Int64})
        .to_frame()
        .to_arrow()
        .schema
    )
    with pq.ParquetWriter(scratch / f"{table}-{part:05d}.parquet", schema, compression="lz4") as writer:
        for block in epf.read_blocks(tuple(delivered)):
            rows = block.rows.rename(dict(zip(delivered, wanted, strict=True))).with_columns(
                source_file=pl.lit(name), position=pl.col("record") + part * RECORDS_PER_PART
            )
            writer.write_table(rows.to_arrow())
            _write_rejects(table, name, block.rejects, out)


def _write_rejects(table: str, name: str, rejects: pl.DataFrame, out: StagingWriter) -> None:
    entity = ENTITIES.get(table)
    if entity:
        out.count_read(entity, rejects.height)
    out.write_rejects(
        rejects.select(
            entity=pl.lit(entity or DEPENDENT.get(table, "source_genre")),
            severity=pl.lit("row" if entity else "field"),
            reason="reason",
            source_file=pl.lit(name),
            place=pl.format("record {}", "record"),
            field=pl.lit(None if entity else table, dtype=pl.String),
            value="value",
            excerpt="excerpt",
        )
    )


DEPENDENT = {
    "artist_song": "source_recording",
    "song_match": "source_recording",
    "song_popularity_per_genre": "source_recording",
    "parental_advisory": "source_recording",
    "collection_song": "source_release_track",
    "artist_collection": "source_release",
    "collection_match": "source_release",
}
"""Tables that are not entities themselves -> the staging table that loses a value by a broken record."""
