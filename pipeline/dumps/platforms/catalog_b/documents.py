"""JSON documents of the platform: their files, the columns that are read, and the kind of each document.

Accepted: `<entity>.tar.xz` with a member `mbdump/<entity>`, that file unpacked, and JSON files of any name (documents one per line, or
answers of the web service). Out of scope: what becomes of them (`document_tables.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.platforms.catalog_b.archives import Metadata, find_archive, is_document_file, read_archive
from pipeline.dumps.readers.json_files import find_json_files, guess_entity
from pipeline.dumps.readers.ndjson import read_json_blocks, read_json_stream
from pipeline.dumps.staging.layout_expectations import split_names
from pipeline.dumps.staging.record_checks import build_unknown_rejects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.dumps.readers.ndjson import Block
    from pipeline.dumps.staging.layout_expectations import MemberCensus
    from pipeline.dumps.staging.parsed_lines import ParsedLines
    from pipeline.dumps.staging.staging_writer import StagingWriter

ENTITIES = ("artist", "label", "recording", "release", "release-group", "work")
"""Names of the archives that are read. The catalog does not need the others (areas, events, series ...)."""
MEMBERS = ("document.works", "document.urls", "document", "works", "urls")
"""Paths of documents in answers. `document` is an answer that was kept together with its request."""
_METADATA = {"JSON_DUMPS_SCHEMA_NUMBER": ("1",)}
"""The last member of each archive: an archive without it was cut off where a member ends."""


def _build_struct(**fields: str) -> str:
    return "STRUCT(" + ", ".join(f'"{name.replace("_", "-")}" {kind}' for name, kind in fields.items()) + ")"


def _declare_texts(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "VARCHAR")


_TAGS = _build_struct(name="VARCHAR", count="INTEGER") + "[]"
_TAGGED = {"tags": _TAGS, "genres": _TAGS}
_ALIASES = {"aliases": _build_struct(**_declare_texts("name", "locale")) + "[]"}
_ARTIST = {**_declare_texts("id", "name", "sort_name"), **_ALIASES, **_TAGGED}
_CREDIT = _build_struct(**_declare_texts("name", "joinphrase"), artist=_build_struct(**_ARTIST)) + "[]"
_WORK = {**_declare_texts("id", "title"), "iswcs": "VARCHAR[]", **_ALIASES}
_RELATION = _build_struct(
    **_declare_texts("type_id", "direction", "target_type", "ended", "target_credit"),
    attribute_ids="JSON",
    artist=_build_struct(**_ARTIST),
    recording=_build_struct(id="VARCHAR"),
    release=_build_struct(id="VARCHAR"),
    work=_build_struct(**_WORK),
    url=_build_struct(**_declare_texts("id", "resource")),
)
_RECORDING = {
    **_declare_texts("id", "title", "video", "disambiguation"),
    "length": "INTEGER",
    "isrcs": "VARCHAR[]",
    "artist_credit": _CREDIT,
    **_ALIASES,
    **_TAGGED,
    "relations": _RELATION + "[]",
}
_TRACK = _build_struct(position="INTEGER", recording=_build_struct(**_RECORDING))
_MEDIUM = {"position": "INTEGER", "track_count": "INTEGER", "pregap": _TRACK, "tracks": f"{_TRACK}[]", "data_tracks": f"{_TRACK}[]"}
_GROUP = {**_declare_texts("id", "primary_type_id"), "secondary_type_ids": "VARCHAR[]", **_TAGGED}
_FIELDS = {
    **_RECORDING,
    **_ARTIST,
    **_WORK,
    **_GROUP,
    **_declare_texts("barcode", "status_id", "quality", "date", "isrc", "resource", "label_code"),
    "life_span": "JSON",
    "release_events": _build_struct(date="VARCHAR") + "[]",
    "label_info": _build_struct(catalog_number="VARCHAR", label=_build_struct(**_declare_texts("id", "name"))) + "[]",
    "release_group": _build_struct(**_GROUP),
    "media": _build_struct(**_MEDIUM) + "[]",
    "recordings": _build_struct(**_RECORDING) + "[]",
}
COLUMNS = {name.replace("_", "-"): kind for name, kind in _FIELDS.items()}
"""Columns of all kinds of documents. Numbers are typed: a document with another value in their place is a broken record."""


USUAL = split_names("""
    id title isrcs artist-credit
""")
"""Members that every dump of some size has."""
IGNORED = split_names("""
    annotation rating area begin-area end-area begin_area end_area gender* type type-id ipis isnis country life-span
    language* attributes first-release-date asin packaging* status cover-art-archive text-representation secondary-types primary-type
    label-code format* score count offset created sort-name aliases.* artist-credit.* tags.* genres.* relations.* media.* recordings.*
    release-group.* label-info.* release-events.* releases release-groups series alias* relation* release-group status-id
    primary-type-id
""")
"""Known members of documents that the catalog does not need."""


def find_document_files(dump: Path) -> list[Path]:
    """Return the files below `dump` that hold documents: archives, unpacked members, JSON files."""
    archives = [archive for name in ENTITIES if (archive := find_archive(dump, name))]
    members = [folder / name for folder in (dump, dump / "mbdump") for name in ENTITIES if is_document_file(folder / name)]
    return [*archives, *members, *find_json_files(dump)]


def read_documents(files: list[Path], dump: Path, out: StagingWriter) -> Iterator[pl.DataFrame]:
    """Yield frames of COLUMNS with `kind`, `source_file`, `place`, in order. Rejects unreadable documents and unknown kinds.

    DumpError when a file is damaged or an archive is of another schema.
    """
    for path in files:
        out.use(path)
        for block in _read_blocks(
            path, str(path.relative_to(dump)), out.start_census("documents", COLUMNS, IGNORED, USUAL), out.parsed_lines
        ):
            entity = guess_entity(path)
            out.count_read(entity, block.broken.height)
            out.write_rejects(block.build_rejects(entity))
            # An artist and a label without further fields look alike.
            marked = block.frame.with_columns(kind=_detect_kind("label" if "label" in path.name else "artist"))
            unknown = marked.filter(pl.col("kind").is_null())
            out.count_read(entity, unknown.height)
            out.write_rejects(build_unknown_rejects(unknown.drop("kind"), entity))
            yield marked.filter(pl.col("kind").is_not_null())
        out.report(f"{path.name}: read")


def _read_blocks(path: Path, source_file: str, census: MemberCensus, parsed: ParsedLines) -> Iterator[Block]:
    if ".tar" not in path.suffixes:
        yield from read_json_blocks(path, COLUMNS, source_file=source_file, members=MEMBERS, census=census, parsed=parsed)
        return
    metadata = Metadata(path, _METADATA)
    for _, stream, member in read_archive(path, metadata, ENTITIES.__contains__):
        yield from read_json_stream(stream, COLUMNS, member, members=MEMBERS, census=census, parsed=parsed)
    # Only after the last member: that is where the file of the schema number is.
    metadata.require()


def _detect_kind(named: str) -> pl.Expr:
    """Return an expression for the kind, by its fields. Artists and labels may be alike: then the file name (`named`) counts."""
    signs = {
        "isrc": ("isrc",),
        "url": ("resource",),
        "recording": ("video",),
        "release": ("quality", "media"),
        "release-group": ("primary-type-id", "secondary-type-ids"),
        "work": ("iswcs",),
        "label": ("label-code",),
        named: ("life-span", "sort-name"),
    }
    # The first sign that a document shows decides. Artists and labels come last, because they share their fields.
    return pl.coalesce(pl.when(pl.any_horizontal(pl.col(*fields).is_not_null())).then(pl.lit(kind)) for kind, fields in signs.items())
