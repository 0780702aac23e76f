"""Adapter of catalog_a: monthly XML files of releases, artists, labels and masters, in the shapes of 2020 and of 2026.

`xml_blocks.py` cuts a file at record starts, and `xml_extraction.py` turns a block into columns of text. `release_records.py`,
`track_records.py` and `party_records.py` say what the columns mean. This module runs the files through them.
docs/reference/formats/catalog_a.md describes files, mapping and rejects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.folder_listing import list_tree
from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.checksums import read_published_checksums
from pipeline.dumps.platforms.catalog_a.duplicates import SeenIds, drop_repeated
from pipeline.dumps.platforms.catalog_a.party_records import build_absent_placeholders, read_artists, read_labels
from pipeline.dumps.platforms.catalog_a.release_records import read_releases
from pipeline.dumps.platforms.catalog_a.xml_blocks import ANCHORS, BLOCK_BYTES, cut_record_blocks
from pipeline.dumps.readers.compressed_files import name_unpacked
from pipeline.dumps.staging.layout_expectations import split_names
from pipeline.engine.pool import map_ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipeline.dumps.platforms.catalog_a.batch import Batch
    from pipeline.dumps.platforms.catalog_a.xml_blocks import Block
    from pipeline.dumps.staging.staging_writer import StagingWriter

_FILE = re.compile(r"(?:.*_)?(releases|artists|labels|masters)\.xml")


SAMPLE_BYTES = 256 << 10
"""Bytes of each block of 8 MB in which tags are counted: about fifty releases."""
_ABOUT = "id name profile data_quality urls url images image"
TAGS = {
    "releases": split_names("""
        release images image artists artist id name anv join role tracks title labels label extraartists formats format descriptions
        description genres genre styles style country released notes data_quality master_id tracklist track position duration sub_tracks
        videos video identifiers identifier companies company catno entity_type entity_type_name resource_url series url
    """),
    "artists": split_names(f"artist realname namevariations aliases members groups {_ABOUT}"),
    "labels": split_names(f"label contactinfo parentLabel sublabels {_ABOUT}"),
}
USUAL_TAGS = {
    "releases": split_names(
        "artists artist id name title labels label formats format genres genre released tracklist track position duration"
    ),
    "artists": split_names("id name"),
    "labels": split_names("id name"),
}
"""Elements that every file of some size has. TAGS are all known ones."""


@dataclass(frozen=True)
class _Kind:
    """Kind of file: the staging table of its records, the reader of a block, and the id column in each table that it fills."""

    entity: str
    read: Callable[[str, Block], Batch]
    keys: dict[str, str]


_KINDS = {
    "releases": _Kind(
        "source_release",
        read_releases,
        {
            "source_release": "release_id",
            "source_recording": "release_id",
            "source_release_track": "release_id",
            "source_genre": "entity_id",
            "source_link": "entity_id",
        },
    ),
    "artists": _Kind("source_artist", read_artists, {"source_artist": "artist_id", "source_legal_name": "artist_id"}),
    "labels": _Kind("source_label", read_labels, {"source_label": "label_id"}),
}


def stage(dump: Path, out: StagingWriter) -> None:
    """Stage the files below `dump`; releases are required.

    Only the beginning of masters is checked, because nothing in the catalog comes from them. A master's year is that of its oldest edition,
    which dates no single record, and the releases themselves name their master.
    """
    files = _find_files(dump)
    if not files["releases"]:
        raise DumpError(f"{dump}: no releases file (*_releases.xml or *_releases.xml.gz): deliver it, without it there are no recordings")
    # The checksum file is written last upstream, so it lists all files of a complete month.
    _require_listed(dump)
    for root, kind in _KINDS.items():
        if files[root]:
            _stage_files(files[root], root, kind, out)
        else:
            out.report(f"no {root} file; {kind.entity} holds only the placeholders")
            if kind.entity != "source_release":
                _stage_placeholders(kind.entity, pl.Series(dtype=pl.String), out)
    for path in files["masters"]:
        out.use(path)
        next(cut_record_blocks(path, "masters"))


def _require_listed(dump: Path) -> None:
    """Raise DumpError when the checksum file lists a file that is missing: the month is not complete yet.

    A file may be compressed in another way than the checksum file says.
    """
    there = {path.with_name(name_unpacked(path.name)) for path in list_tree(dump)}
    for path in sorted(read_published_checksums(dump)):
        match = _FILE.fullmatch(name_unpacked(path.name))
        if match and match[1] in _KINDS and path.with_name(name_unpacked(path.name)) not in there:
            raise DumpError(f"{path}: listed in the checksum file, but not there; fetch the whole month")


def _find_files(dump: Path) -> dict[str, list[Path]]:
    """Return the files by root element, those of a kind in the order of their names."""
    files: dict[str, list[Path]] = {root: [] for root in (*_KINDS, "masters")}
    for path in list_tree(dump):
        match = _FILE.fullmatch(name_unpacked(path.name))
        if match:
            files[match[1]].append(path)
    return files


def _stage_files(paths: list[Path], root: str, kind: _Kind, out: StagingWriter) -> None:
    seen = SeenIds()
    placeholders: list[pl.Series] = []
    for path in paths:
        out.use(path)
        # A file of one block has no work for a second process, whose start costs half a second.
        workers = 1 if path.stat().st_size < BLOCK_BYTES else None
        blocks = _count_sampled_tags(cut_record_blocks(path, root), root, out)
        for batch in map_ordered(partial(kind.read, path.name), blocks, workers=workers):
            # Here and not in the workers: only this process sees all blocks in file order.
            fresh = drop_repeated(batch, kind.entity, seen, kind.keys)
            for entity, rows in fresh.read.items():
                out.count_read(entity, rows)
            for entity, frame in fresh.frames.items():
                out.write(entity, frame.with_columns(source_file=pl.lit(path.name)))
            for rejects in fresh.rejects:
                out.write_rejects(rejects)
            if kind.entity != "source_release":
                # The file may hold a placeholder itself; then it is not added once more at the end.
                placeholders.append(fresh.records["record_id"].filter(fresh.frames[kind.entity]["is_placeholder"]))
        out.report(f"{path.name} staged")
    if placeholders:
        out.count_read(kind.entity, _stage_placeholders(kind.entity, pl.concat(placeholders), out))


def _count_sampled_tags(blocks: Iterator[Block], root: str, out: StagingWriter) -> Iterator[Block]:
    """Yield the same blocks and count the elements at the beginning of each."""
    for block in blocks:
        out.count_tags(f"{root} file", block.data[:SAMPLE_BYTES], ANCHORS[root], TAGS[root], USUAL_TAGS[root])
        yield block


def _stage_placeholders(entity: str, delivered: pl.Series, out: StagingWriter) -> int:
    frame = build_absent_placeholders(entity, delivered)
    out.write(entity, frame)
    return frame.height
