"""Manifest of a composition snapshot: its files, their numbers of lines and MD5 hashes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.checksums import hash_file
from pipeline.dumps.readers.compressed_files import COMPRESSED_SUFFIXES, read_blocks

if TYPE_CHECKING:
    from pathlib import Path

_MANIFEST = re.compile(r"(?i)manifest.*\.tsv(?:" + "|".join(map(re.escape, COMPRESSED_SUFFIXES)) + ")?$")
_FILE = re.compile(r"(?i)\.tsv$")
_MD5 = re.compile(r"^[0-9a-fA-F]{32}$")
_END = "EOF"


@dataclass(frozen=True)
class Listed:
    """Entry of the manifest for a file. A value that it does not give is None."""

    lines: int | None
    md5: str | None


def read_manifest(folder: Path) -> dict[str, Listed]:
    """Return the entries by file name; none without a manifest. Raises DumpError when the manifest itself is cut off.

    The shape of a cell shows what it is, because senders write different cells before the file name.
    """
    manifests = sorted(path for path in folder.iterdir() if path.is_file() and _MANIFEST.search(path.name))
    listed: dict[str, Listed] = {}
    for path in manifests:
        lines = b"".join(read_blocks(path)).decode("utf-8-sig", "replace").split("\n")
        records = [line.rstrip("\r").split("\t") for line in lines if line.strip()]
        # The footer is the last record, so a manifest without it was cut off and may list too few files.
        if not records or not any(cell.startswith(_END) for cell in records[-1]):
            raise DumpError(f"{path}: no {_END} record at the end; the manifest is cut off, fetch the snapshot again")
        for cells in records:
            name = next((index for index, cell in enumerate(cells) if _FILE.search(cell)), None)
            if name is not None:
                rest = cells[name + 1 :]
                lines_listed = next((int(cell) for cell in rest if cell.isdecimal()), None)
                md5 = next((cell.lower() for cell in rest if _MD5.match(cell)), None)
                listed[cells[name]] = Listed(lines_listed, md5)
    return listed


def check_file(path: Path, listed: Listed | None, lines: int, *, has_heading: bool) -> None:
    """Raise DumpError when `path` differs from its entry. `lines` counts all lines; the manifest may leave out a heading."""
    if listed is None:
        return
    # A manifest may count the heading or not.
    if listed.lines is not None and listed.lines not in {lines, lines - has_heading}:
        raise DumpError(f"{path}: has {lines} lines, the manifest lists {listed.lines}; the file is cut off or of another snapshot")
    if listed.md5 is not None and (actual := hash_file(path, "md5")) != listed.md5:
        raise DumpError(f"{path}: its MD5 is {actual}, the manifest lists {listed.md5}; fetch the file again")


def check_presence(folder: Path, manifest: dict[str, Listed]) -> None:
    """Raise DumpError when a listed file is missing."""
    missing = sorted(name for name in manifest if not (folder / name).is_file())
    if missing:
        raise DumpError(f"{folder}: {', '.join(missing)} listed in the manifest, but not there; the snapshot is not complete")
