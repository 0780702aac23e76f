"""Mapping file of an audio folder: the recording of each file.

    path,isrc,platform,id
    albums/one.flac,GBDUW0000059,,
    singles/two.mp3,,streamsvc_a,6habFhsOp2NvshLv26DqMb

UTF-8 CSV, one heading, columns in any order, others passed over. A row names its recording by a code or by platform and id; with both the
code counts first. The id of a catalog_a track is `<release id>-<n>`, n counting the tracks of the release from 1.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, NamedTuple

from catalog_store.identifiers import normalise_isrc
from catalog_store.platforms import CATALOG_PLATFORMS
from pipeline.dumps.errors import DumpError
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

MAPPING = "mapping.csv"
COLUMNS = ("path", "isrc", "platform", "id")


class Entry(NamedTuple):
    """A row that can be used: `path` below the folder, the recording, and where the row is."""

    path: str
    isrc: str | None
    platform: str | None
    external_id: str | None
    place: str
    line: str


def read_mapping(folder: Path, out: StagingWriter) -> Iterator[Entry]:
    """Return the usable rows in order and reject the others. Raises DumpError when the mapping file or one of its columns is missing."""
    file = folder / MAPPING
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.DictReader(opened)
            delivered = reader.fieldnames or ()
            if "path" not in delivered or not ("isrc" in delivered or {"platform", "id"} <= set(delivered)):
                raise DumpError(
                    f"{file}: the first line must name path and isrc, or path, platform and id; it is {','.join(delivered)[:200]}"
                )
            seen: set[str] = set()
            for number, row in enumerate(reader, start=1):
                out.count_read("source_audio_file")
                values = {name: (row.get(name) or "").strip() for name in COLUMNS}
                trouble = _find_trouble(values, folder, seen)
                if trouble is None:
                    seen.add(values["path"])
                    yield _build_entry(values, f"record {number}")
                    continue
                reason, value = trouble
                place = {"source_file": MAPPING, "place": f"record {number}"}
                out.reject("source_audio_file", reason, **place, record_id=values["path"] or None, value=value, excerpt=_join_line(values))
    except FileNotFoundError as error:
        raise DumpError(f"{folder}: no {MAPPING}; deliver one with the columns {','.join(COLUMNS)}") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DumpError(f"{file}: cannot be read ({error}); deliver it as CSV in UTF-8") from error


def _find_trouble(row: dict[str, str], folder: Path, seen: set[str]) -> tuple[Reason, str] | None:
    path = row["path"]
    if not path:
        return Reason.MISSING_ID, "path"
    if path in seen:
        return Reason.DUPLICATE_ID, path
    # A mapping must not lead out of the folder (`../`, links): the file would be read with the rights of the build.
    if not (folder / path).resolve().is_relative_to(folder.resolve()):
        return Reason.MISSING_FILE, path
    return _find_recording_trouble(row)


def _find_recording_trouble(row: dict[str, str]) -> tuple[Reason, str] | None:
    isrc = row["isrc"]
    if isrc and normalise_isrc(isrc) is None:
        return Reason.INVALID_ISRC, isrc
    if not isrc and not (row["platform"] and row["id"]):
        return Reason.MISSING_ID, "isrc, or platform and id"
    if row["platform"] and row["platform"] not in CATALOG_PLATFORMS:
        return Reason.UNKNOWN_KIND, row["platform"]
    return None


def _build_entry(row: dict[str, str], place: str) -> Entry:
    platform, external_id = (row["platform"], row["id"]) if row["platform"] and row["id"] else (None, None)
    return Entry(row["path"], normalise_isrc(row["isrc"]) if row["isrc"] else None, platform, external_id, place, _join_line(row))


def _join_line(row: dict[str, str]) -> str:
    return ",".join(row[name] for name in COLUMNS)
