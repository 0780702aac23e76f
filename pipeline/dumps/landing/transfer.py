"""Transfer of one file of a dump: by a hard link, or as catalog_store/file_transfer.py fetches any file.

Out of scope: which files, how often to try, and whether the content is right.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from catalog_store import file_transfer
from catalog_store.errors import TransferError
from pipeline.dumps.errors import DumpError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.landing.upstream import RemoteFile


def link_file(origin: Path, target: Path) -> bool:
    """Hard-link a local file. Return False if that is impossible (another file system); the caller copies it then."""
    try:
        os.link(origin.resolve(), target)
    except OSError:
        return False
    return True


def download(file_system: Any, file: RemoteFile, partial: Path) -> int:  # noqa: ANN401 - fsspec has no types
    """Fetch `file` into `partial` durably, continuing a partial file. Return the bytes that were transferred.

    Raises DumpError when the number of bytes differs from the announced one, FileNotFoundError when the file is gone.
    """
    offered = file_transfer.OfferedFile(
        file.path,
        file.name,
        file.size,
        is_continued=file.is_change_visible,
        is_proven=bool(file.checksums),
        validator=_choose_validator(file),
    )
    try:
        fetched = file_transfer.download(file_system, offered, partial)
    except TransferError as error:
        raise DumpError(str(error)) from error
    size = partial.stat().st_size
    if file.size is not None and size != file.size:
        raise DumpError(f"{file.name}: {size:,} bytes came, {file.size:,} were announced")
    return fetched


def _choose_validator(file: RemoteFile) -> str | None:
    """Return the validator that a server compares byte for byte (RFC 9110, 13.1.5); None when it gave none."""
    # A weak tag promises the same meaning, not the same bytes, and If-Range must not carry one.
    if file.entity_tag and not file.entity_tag.startswith("W/"):
        return file.entity_tag
    return file.modified
