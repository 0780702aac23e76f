"""Manifest of a composition snapshot: its files, their numbers of lines and MD5 hashes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.checksums import hash_file
from pipeline.dumps.readers.compressed_files import name_unpacked, read_blocks

if TYPE_CHECKING:
    from pathlib import Path

_MANIFEST = re.compile(r"(?i)manifest.*\.tsv$")
_FILE = re.compile(r"(?i)\.tsv$")
_MD5 = re.compile(r"^[0-9a-fA-F]{32}$")
_END = "EOF"


@dataclass(frozen=True)
class Listed:
    """Entry of the manifest for a file. A value that it does not give is None."""

    name: str
    lines: int | None
    md5: str | None


def read_manifest(folder: Path) -> dict[str, Listed]:
    """Return the entries by the name of the unpacked file; none without a manifest. Raises DumpError when the manifest itself is cut off.

    The shape of a cell shows what it is, because senders write different cells before the file name.
    """
    manifests = sorted(path for path in folder.iterdir() if path.is_file() and _MANIFEST.search(name_unpacked(path.name)))
    listed: dict[str, Listed] = {}
    for path in manifests:
        lines = b"".join(read_blocks(path)).decode("utf-8-sig", "replace").split("\n")
        records = [line.rstrip("\r").split("\t") for line in lines if line.strip()]
        # The footer is the last record, so a manifest without it was cut off and may list too few files.
        if not records or not any(cell.startswith(_END) for cell in records[-1]):
            raise DumpError(f"{path}: no {_END} record at the end; the manifest is cut off, fetch the snapshot again")
        for cells in records:
            name = next((index for index, cell in enumerate(cells) if _FILE.search(name_unpacked(cell))), None)
            if name is not None:
                rest = cells[name + 1 :]
                lines_listed = next((int(cell) for cell in rest if cell.isdecimal()), None)
                md5 = next((cell.lower() for cell in rest if _MD5.match(cell)), None)
                listed[name_unpacked(cells[name])] = Listed(cells[name], lines_listed, md5)
    return listed


def check_file(path: Path, listed: Listed | None, lines: int, *, has_heading: bool) -> None:
    """Raise DumpError when `path` differs from its entry. `lines` counts all lines; the manifest may leave out a heading."""
    if listed is None:
        return
    # A manifest may count the heading or not.
    if listed.lines is not None and listed.lines not in {lines, lines - has_heading}:
        raise DumpError(f"{path}: has {lines} lines, the manifest lists {listed.lines}; the file is cut off or of another snapshot")
    if listed.md5 is not None and (actual := _hash_as_listed(path, listed)) not in {listed.md5, None}:
        raise DumpError(f"{path}: its MD5 is {actual}, the manifest lists {listed.md5}; fetch the file again")


def _hash_as_listed(path: Path, listed: Listed) -> str | None:
    """Return the MD5 of the file, or of its unpacked content if that is listed; None when neither is."""
    if listed.name == path.name:
        return hash_file(path, "md5")
    if listed.name != name_unpacked(path.name):
        return None
    digest = hashlib.md5(usedforsecurity=False)
    for block in read_blocks(path):
        digest.update(block)
    return digest.hexdigest()


def check_presence(folder: Path, manifest: dict[str, Listed]) -> None:
    """Raise DumpError when a listed file is missing. It may be compressed in another way than the manifest says."""
    there = {name_unpacked(path.name) for path in folder.iterdir() if path.is_file()}
    missing = sorted(listed.name for name, listed in manifest.items() if name not in there)
    if missing:
        raise DumpError(f"{folder}: {', '.join(missing)} listed in the manifest, but not there; the snapshot is not complete")
