"""Frames that one build leaves for the next, each in a file with its own checksum: a damaged or torn file counts as none.

bytes 0..31   SHA-256 of the rest
then          an Arrow IPC file, compressed by lz4
"""

from __future__ import annotations

import hashlib
from io import BytesIO
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.pending_files import write_aside

if TYPE_CHECKING:
    from pathlib import Path

_CHECKSUM_BYTES = 32


def read_sealed(file: Path) -> pl.DataFrame | None:
    """Return the rows of a file; None without one, or when it is damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    rows = content[_CHECKSUM_BYTES:]
    return pl.read_ipc(rows) if hashlib.sha256(rows).digest() == content[:_CHECKSUM_BYTES] else None


def write_sealed(file: Path, rows: pl.DataFrame) -> None:
    """Write the rows. A killed writer leaves the file as it was."""
    buffer = BytesIO()
    rows.write_ipc(buffer, compression="lz4")
    content = buffer.getvalue()
    with write_aside(file) as pending:
        pending.write_bytes(hashlib.sha256(content).digest() + content)
