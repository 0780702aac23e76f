"""Transfer of one file from another machine: by one HTTP request, or by the file system of fsspec.

A transfer that broke off is continued only if the first part is provably of the same file: HTTP requests carry `If-Range`, or a checksum
proves the whole file afterwards. Addresses come from the operator, so they may be inside the network; those of callers go through
outbound_http. Out of scope: which files, how often to try, and whether the content is right.
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import aiohttp
from fsspec.asyn import get_loop, sync

from catalog_store.errors import TransferError

if TYPE_CHECKING:
    from pathlib import Path

BLOCK_BYTES = 8 * 1024 * 1024
CONNECT_SECONDS = 30
SILENCE_SECONDS = 120
"""Seconds without a byte after which a server is given up. A slow server may take as long as it needs."""
_END_SECONDS = 2
"""Longest time that a command which a signal ended waits for its connections to close."""

_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)", re.IGNORECASE)
_COMPRESSED_NAMES = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip")
_NOT_FOUND = (404, 410)
_RANGE_REFUSED = 416
_PARTIAL = 206


class TooLongError(TransferError):
    """The server sends more than it announced. What it sent so far is in the file."""


@dataclass(frozen=True)
class OfferedFile:
    """A file that another machine offers, and what is known of it before it is fetched."""

    path: str
    """Path or address in its file system."""
    name: str
    """Name in messages."""
    size: int | None
    """Size in bytes; None when nobody announced it."""
    is_continued: bool = False
    """Whether an earlier part may be of the same file. Otherwise a transfer begins again."""
    is_proven: bool = False
    """Whether a checksum proves the whole file afterwards."""
    validator: str | None = None
    """Entity tag or time of change that a server compares byte for byte (RFC 9110, 13.1.5)."""
    most_bytes: int | None = None
    """Most bytes to take of a file of unknown size."""
    is_uncached: bool = False
    """Whether caches on the way must ask the server. For a file that changes under one name."""


def download(file_system: Any, file: OfferedFile, partial: Path) -> int:  # noqa: ANN401 - fsspec has no types
    """Fetch `file` into `partial` durably, continuing a partial file. Return the bytes that were transferred.

    Raises TooLongError when the server sends more than it announced, other TransferErrors for answers that make no sense,
    FileNotFoundError when the file is gone, and the errors of file systems. Whether all came is for the caller to check.
    """
    start = partial.stat().st_size if partial.exists() else 0
    # Without a validator the first part may be of another version of the file.
    if not file.is_continued or (file.size is not None and start > file.size):
        start = 0
    # `r+b` keeps the first part. Append mode would ignore the `seek` below.
    with partial.open("r+b" if start else "wb") as local:
        if start and start == file.size:
            fetched = 0
        elif is_http(file_system):
            try:
                fetched = sync(file_system.loop, _stream, file_system, file, start, local)
            except aiohttp.TooManyRedirects as error:  # its own text says only "0"
                raise TransferError(f"{file.name}: the server redirects {len(error.history)} times and never answers") from error
        else:
            fetched = _read(file_system, file, start, local)
        local.flush()
        os.fsync(local.fileno())
    return fetched


def end_transfers() -> None:
    """End what still runs in fsspec's thread, for a command that a signal ended. Otherwise Python complains of it at the exit."""
    with suppress(TimeoutError):  # fsspec's error, too
        sync(get_loop(), _cancel_tasks, timeout=_END_SECONDS)


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def is_http(file_system: Any) -> bool:  # noqa: ANN401
    """Return whether the files come over HTTP."""
    return "https" in _list_protocols(file_system)


def is_local(file_system: Any) -> bool:  # noqa: ANN401
    """Return whether the files are on this machine."""
    return "file" in _list_protocols(file_system)


def _list_protocols(file_system: Any) -> tuple[str, ...]:  # noqa: ANN401
    return (file_system.protocol,) if isinstance(file_system.protocol, str) else tuple(file_system.protocol)


def _read(file_system: Any, file: OfferedFile, start: int, local: BinaryIO) -> int:  # noqa: ANN401
    with file_system.open(file.path, "rb", block_size=BLOCK_BYTES, cache_type="readahead") as remote:
        if start:
            try:
                remote.seek(start)
            except (OSError, ValueError):
                start = 0  # no ranges: from the beginning again
        local.seek(start)
        local.truncate()
        while block := remote.read(BLOCK_BYTES):
            _write(file, local, block)
    return local.tell() - start


async def _stream(file_system: Any, file: OfferedFile, start: int, local: BinaryIO) -> int:  # noqa: ANN401
    """Send one GET from `start` on, or from the beginning if the server cannot promise that the rest is of the same file."""
    options = dict(file_system.kwargs)
    # Without `identity` a server may pack the file on the way: sizes, ranges and checksums are those of the plain file.
    headers = {**options.pop("headers", {}), "Accept-Encoding": "identity"}
    headers |= {"Cache-Control": "no-cache"} if file.is_uncached else {}
    # A checksum proves the whole file afterwards, so a range is safe even without a validator.
    if start and (file.validator or file.is_proven):
        headers["Range"] = f"bytes={start}-"
        headers |= {"If-Range": file.validator} if file.validator else {}
    else:
        start = 0
    # No limit in total: a large file takes hours. Silence is what shows a dead server.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
    session = await file_system.set_session()
    request = session.get(file_system.encode_url(file.path), headers=headers, timeout=timeout, auto_decompress=False, **options)
    async with request as answer:
        if answer.status in _NOT_FOUND:
            raise FileNotFoundError(file.path)
        # The file has become shorter, so the partial file is of an older one. The next attempt begins again.
        if answer.status == _RANGE_REFUSED:
            local.truncate(0)
            raise TransferError(f"{file.name}: the server has no bytes from {start:,} on; the next attempt starts from the beginning")
        answer.raise_for_status()
        encoding = answer.headers.get("Content-Encoding", "identity")
        # Servers declare `.gz` files as content encoding gzip, though the file itself is the packed one. It is taken as it is.
        if encoding.strip().lower() not in ("identity", "") and not file.name.lower().endswith(_COMPRESSED_NAMES):
            raise TransferError(
                f"{file.name}: the server encodes it as {encoding}, but the request allows only `identity`: deliver it by another server"
            )
        if start and answer.status != _PARTIAL:
            start = 0  # the server knows no ranges, or has another file by now
        elif start and not _is_rest(answer.headers.get("Content-Range", ""), start, file.size):
            local.truncate(0)
            raise TransferError(
                f"{file.name}: the request asked for bytes from {start:,} on, the answer has {answer.headers.get('Content-Range')!r}"
            )
        local.seek(start)
        local.truncate()
        async for block in answer.content.iter_chunked(BLOCK_BYTES):
            _write(file, local, block)
    return local.tell() - start


def _write(file: OfferedFile, local: BinaryIO, block: bytes) -> None:
    local.write(block)
    if file.size is not None and local.tell() > file.size:
        raise TooLongError(f"{file.name}: the server sends more than the {file.size:,} bytes that it announced")
    if file.most_bytes is not None and local.tell() > file.most_bytes:
        raise TooLongError(f"{file.name}: the server sends more than {file.most_bytes:,} bytes")


def _is_rest(content_range: str, start: int, size: int | None) -> bool:
    match = _CONTENT_RANGE.fullmatch(content_range.strip())
    # A proxy may answer 206 with another range. Its bytes would be glued to the wrong place.
    return bool(match and int(match[1]) == start and (size is None or match[2] in ("*", str(size))))
