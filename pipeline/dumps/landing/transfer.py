"""Transfer of one file from upstream: by a hard link, by one HTTP request, or by the file system of fsspec.

A transfer that broke off is continued only if the first part is provably of the same file: HTTP requests carry `If-Range`, other file
systems need validators. What must not live here: which files, how often to try, and whether the content is right.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any, BinaryIO

import aiohttp
from fsspec.asyn import sync

from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.upstream import RemoteFile, is_http

if TYPE_CHECKING:
    from pathlib import Path

BLOCK_BYTES = 8 * 1024 * 1024
CONNECT_SECONDS = 30
SILENCE_SECONDS = 120
"""Seconds without a byte after which a server is given up. A slow server may take as long as it needs."""

_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_COMPRESSED_NAMES = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip")
_NOT_FOUND = (404, 410)
_RANGE_REFUSED = 416
_PARTIAL = 206


def link_file(origin: Path, target: Path) -> bool:
    """Hard-link a local file. Return False if that is impossible (another file system); the caller copies it then."""
    try:
        os.link(origin.resolve(), target)
    except OSError:
        return False
    return True


def download(file_system: Any, file: RemoteFile, partial: Path) -> int:  # noqa: ANN401 - fsspec has no types
    """Fetch `file` into `partial` durably, continuing what lies there. Return the bytes that were transferred.

    Raises DumpError when the number of bytes differs from the announced one, FileNotFoundError when the file is gone.
    """
    start = partial.stat().st_size if partial.exists() else 0
    # Without a validator the first part may be of another version of the file.
    if not file.is_change_visible or (file.size is not None and start > file.size):
        start = 0
    # `r+b` keeps the first part. Append mode would ignore the `seek` below.
    with partial.open("r+b" if start else "wb") as local:
        if start and start == file.size:
            fetched = 0
        elif is_http(file_system):
            fetched = sync(file_system.loop, _stream, file_system, file, start, local)
        else:
            fetched = _read(file_system, file, start, local)
        local.flush()
        os.fsync(local.fileno())
        size = os.fstat(local.fileno()).st_size
    if file.size is not None and size != file.size:
        raise DumpError(f"{file.name}: {size:,} bytes came, {file.size:,} were announced")
    return fetched


def _read(file_system: Any, file: RemoteFile, start: int, local: BinaryIO) -> int:  # noqa: ANN401
    with file_system.open(file.path, "rb", block_size=BLOCK_BYTES, cache_type="readahead") as remote:
        if start:
            try:
                remote.seek(start)
            except (OSError, ValueError):
                start = 0  # no ranges: from the beginning again
        local.seek(start)
        local.truncate()
        shutil.copyfileobj(remote, local, BLOCK_BYTES)
    return local.tell() - start


async def _stream(file_system: Any, file: RemoteFile, start: int, local: BinaryIO) -> int:  # noqa: ANN401
    """Send one GET from `start` on, or from the beginning if the server cannot promise that the rest is of the same file."""
    options = dict(file_system.kwargs)
    # Without `identity` a server may pack the file on the way: sizes, ranges and checksums are those of the plain file.
    headers = {**options.pop("headers", {}), "Accept-Encoding": "identity"}
    condition = _choose_validator(file)
    # A checksum proves the whole file afterwards, so a range is safe even without a validator.
    if start and (condition or file.checksums):
        headers["Range"] = f"bytes={start}-"
        headers |= {"If-Range": condition} if condition else {}
    else:
        start = 0
    # No limit in total: a large dump takes hours. Silence is what shows a dead server.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
    session = await file_system.set_session()
    request = session.get(file_system.encode_url(file.path), headers=headers, timeout=timeout, auto_decompress=False, **options)
    async with request as answer:
        if answer.status in _NOT_FOUND:
            raise FileNotFoundError(file.path)
        # The file has become shorter, so what lies here is of an older one. The next attempt begins anew.
        if answer.status == _RANGE_REFUSED:
            local.truncate(0)
            raise DumpError(f"{file.name}: the server has no bytes from {start:,} on; the next attempt starts from the beginning")
        answer.raise_for_status()
        encoding = answer.headers.get("Content-Encoding", "identity")
        # Servers declare `.gz` files as content encoding gzip, though the file itself is the packed one. It is taken as it is.
        if encoding not in ("identity", "") and not file.name.endswith(_COMPRESSED_NAMES):
            raise DumpError(
                f"{file.name}: the server encodes it as {encoding}, but the request allows only `identity`: deliver it by another server"
            )
        if start and answer.status != _PARTIAL:
            start = 0  # the server knows no ranges, or has another file by now
        elif start and not _is_rest(answer.headers.get("Content-Range", ""), start, file.size):
            local.truncate(0)
            raise DumpError(
                f"{file.name}: the request asked for bytes from {start:,} on, the answer has {answer.headers.get('Content-Range')!r}"
            )
        local.seek(start)
        local.truncate()
        async for block in answer.content.iter_chunked(BLOCK_BYTES):
            local.write(block)
            if file.size is not None and local.tell() > file.size:
                raise DumpError(f"{file.name}: the server sends more than the {file.size:,} bytes that it announced")
    return local.tell() - start


def _is_rest(content_range: str, start: int, size: int | None) -> bool:
    match = _CONTENT_RANGE.fullmatch(content_range.strip())
    # A proxy may answer 206 with another range. Its bytes would be glued to the wrong place.
    return bool(match and int(match[1]) == start and (size is None or match[2] in ("*", str(size))))


def _choose_validator(file: RemoteFile) -> str | None:
    """Return the validator that a server compares byte for byte (RFC 9110, 13.1.5); None when it gave none."""
    # A weak tag promises the same meaning, not the same bytes, and If-Range must not carry one.
    if file.entity_tag and not file.entity_tag.startswith("W/"):
        return file.entity_tag
    return file.modified
