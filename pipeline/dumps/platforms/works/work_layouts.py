"""The two layouts of the composition data: which file is which, and where the cells are that are read.

Version 1 names the files works, recordings, worksrecordings; 2.0 calls them musicalworks, resources, workresourcelinks and may begin each
with a heading line whose first cell starts with `#`. Files are known to carry the one layout under the other's names, so the cells are
found by the heading if there is one, else by the number of cells.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.compressed_files import COMPRESSED_SUFFIXES, DumpFile
from pipeline.dumps.readers.line_blocks import cut_lines
from pipeline.dumps.readers.tab_rows import LONGEST_LINE_BYTES

if TYPE_CHECKING:
    from pathlib import Path

_SNIFFED_BYTES = 1 << 17
_FEWEST_LINES = 2
_SUFFIX = r"(?:[_.-]?\d+)?\.tsv(?:" + "|".join(re.escape(suffix) for suffix in COMPRESSED_SUFFIXES) + ")?$"


@dataclass(frozen=True)
class Kind:
    """A kind of file: its `names` in either layout, the `fields` read with their headings, the place of each per cell count."""

    name: str
    names: tuple[str, ...]
    fields: dict[str, tuple[str, ...]]
    places: dict[int, tuple[int, ...]]

    @property
    def file_name(self) -> re.Pattern[str]:
        """`works.tsv`, also with a prefix (`BWARM_..._works.tsv`), numbered parts and compression."""
        return re.compile(r"(?i)(?:^|[_.-])(?:" + "|".join(self.names) + ")" + _SUFFIX)


WORKS = Kind(
    "works",
    ("works", "musicalworks"),
    {"id": ("feedprovidersworkid", "musicalworkrecordid"), "iswc": ("iswc",), "title": ("worktitle", "musicalworktitle")},
    {11: (0, 1, 2), 13: (0, 1, 2)},
)
RECORDINGS = Kind(
    "recordings",
    ("recordings", "resources"),
    {
        "id": ("feedprovidersrecordingid", "resourcerecordid"),
        "isrc": ("isrc",),
        "title": ("recordingtitle", "title"),
        "subtitle": ("recordingsubtitle", "subtitle"),
        "artist": ("displayartistname",),
        "duration": ("duration",),
    },
    {14: (0, 1, 2, 3, 4, 7), 17: (0, 2, 3, 5, 6, 10)},
)
LINKS = Kind(
    "links",
    ("worksrecordings", "workresourcelinks", "workrecordings"),
    {
        "id": ("feedproviderslinkid", "linkrecordid"),
        "work": ("feedprovidersworkid", "musicalworkid", "musicalworkrecordid"),
        "recording": ("feedprovidersrecordingid", "resourcerecordid"),
    },
    {3: (0, 1, 2)},
)
TITLES = Kind(
    "titles",
    ("workalternativetitles", "alternativemusicalworktitles"),
    {
        "id": ("feedprovidersworkalternativetitleid", "alternativemusicalworktitlerecordid"),
        "work": ("feedprovidersworkid", "musicalworkid", "musicalworkrecordid"),
        "title": ("alternativetitle", "alternativemusicalworktitle"),
    },
    {5: (0, 1, 2)},
)
KINDS = (WORKS, RECORDINGS, LINKS)
OPTIONAL_KINDS = (TITLES,)
"""Kinds that a snapshot may lack."""


@dataclass(frozen=True)
class Layout:
    """The layout of one file: cells per line, whether the first line is a heading, the place of each field."""

    cells: int
    has_heading: bool
    places: dict[str, int]
    unnamed: tuple[str, ...] = ()
    """Fields that the heading does not name: the cells are taken where they always were."""


def find_files(dump: Path) -> tuple[Path, dict[str, list[Path]]]:
    """Return the folder that holds the files (`dump` itself or its `BWARM_*` sub-folder) and its files per kind, in name order.

    DumpError when a kind is missing everywhere or several snapshots are side by side.
    """
    folders = [dump, *sorted(path for path in dump.iterdir() if path.is_dir() and path.name.upper().startswith("BWARM"))]
    # The snapshot folder may itself be the dump, or contain it as delivered.
    found = [(folder, files) for folder in folders if (files := _find_kind_files(folder))]
    if len(found) > 1:
        raise DumpError(f"{dump}: {' and '.join(folder.name for folder, _ in found)} both hold composition data; deliver one snapshot")
    if not found:
        raise DumpError(f"{dump}: no works.tsv (or musicalworks.tsv) in it or in a BWARM_* folder below; deliver the snapshot")
    folder, files = found[0]
    missing = [" or ".join(kind.names[:2]) for kind in KINDS if kind.name not in files]
    if missing:
        raise DumpError(f"{folder}: no file of {', '.join(missing)}; the snapshot is not complete")
    return folder, files


def _find_kind_files(folder: Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        for kind in (*KINDS, *OPTIONAL_KINDS):
            if path.is_file() and kind.file_name.search(path.name):
                files.setdefault(kind.name, []).append(path)
    return files


def _read_first_lines(path: Path) -> list[bytes]:
    """Return the whole lines at the beginning of the file: those within _SNIFFED_BYTES, or at least one after a heading.

    Lines that are too long to be read are skipped.
    """
    lines: list[bytes] = []
    with DumpFile(path) as file:
        for piece in cut_lines(iter(lambda: file.read(_SNIFFED_BYTES), b""), LONGEST_LINE_BYTES):
            if isinstance(piece, bytes):
                lines += piece.removesuffix(b"\n").split(b"\n")
            if len(lines) >= _FEWEST_LINES:
                break
    lines = [line.removesuffix(b"\r") for line in lines]
    return [lines[0].removeprefix(b"\xef\xbb\xbf"), *lines[1:]] if lines else lines


def detect_layout(path: Path, kind: Kind) -> Layout:
    """Detect the layout from the beginning of the file. DumpError when neither heading nor cell count is of a known layout."""
    lines = _read_first_lines(path)
    if not any(line.strip() for line in lines):
        raise DumpError(
            f"{path}: holds only blank lines, or ones of more than {LONGEST_LINE_BYTES} bytes; fetch it again and compare its checksum"
        )
    # Such a file would be one heading without rows, and each link to its records would lead nowhere.
    if len(lines) == 1 and b"\r" in lines[0]:
        raise DumpError(f"{path}: its lines end in CR alone; have it written with LF or CRLF")
    unnamed: tuple[str, ...] = ()
    heading = lines[0].decode("utf-8", errors="replace").removeprefix("#").lower().split("\t") if lines[0].startswith(b"#") else None
    # The most frequent count wins: single lines may be cut or hold a tab too many.
    counts = Counter(line.count(b"\t") + 1 for line in lines[1 if heading else 0 :] if line)
    if heading:
        named = {field: next((heading.index(name) for name in names if name in heading), -1) for field, names in kind.fields.items()}
        if min(named.values()) >= 0:
            return Layout(len(heading), has_heading=True, places=named)
        unnamed = tuple(field for field, place in named.items() if place < 0)
        # A heading that misses a name still has the right number of cells.
        counts[len(heading)] += 1
    for cells, _ in counts.most_common():
        if cells in kind.places:
            return Layout(cells, heading is not None, dict(zip(kind.fields, kind.places[cells], strict=True)), unnamed)
    raise DumpError(
        f"{path}: lines have {counts.most_common(1)[0][0]} cells, but {kind.name} have {' or '.join(map(str, kind.places))}; "
        "the layout has changed: compare it with work_layouts.py"
    )
