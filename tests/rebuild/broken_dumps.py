"""Functions that damage a delivered dump in place, one for each kind of fault."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def truncate(dump: Path) -> None:
    file = next(dump.glob("*releases.xml.gz"))
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data[: len(data) // 2])


def wrong_schema(dump: Path) -> None:
    for name in ("mbdump.tar.bz2", "mbdump-derived.tar.bz2"):
        file = dump / name
        if not file.exists():
            continue
        with tarfile.open(file) as old:
            members = [(member, b"9\n" if member.name == "SCHEMA_SEQUENCE" else old.extractfile(member).read()) for member in old]  # type: ignore[union-attr]
        file.unlink()
        with tarfile.open(file, "w:bz2") as new:
            for member, data in members:
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))


def empty_files(dump: Path) -> None:
    for file in list(dump.rglob("*")):
        if file.is_file():
            file.unlink()
            file.write_bytes(b"")


def without_checksums(dump: Path) -> None:
    for file in dump.rglob("*"):
        if "SUM" in file.name:
            file.unlink()
