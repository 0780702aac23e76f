"""Receive audio uploads: never whole in memory, in a bounded number of files without names.

A file without a name disappears with the process that has it open, so nothing is left to clean up after a kill. The number of files in a
worker and the size of each are bounded. An upload that takes too long is ended; server/http_protocol.py has ended the slowest before.
Out of scope: recognition (recognition.py), prices (credit_prices.py).
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import tempfile
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import structlog

from account_store.private_files import FOLDER_MODE, make_private_folder
from audio_recognition.decoding import SNIFFED_BYTES, sniff
from catalog_api.problems import RETRY_SOON, ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from litestar.types import Receive, Scope

log = structlog.get_logger("catalog_api")

MEGABYTE = 2**20
LARGEST_UPLOAD = 100 * MEGABYTE
"""Specification, part 8."""
UPLOAD_TYPE = "application/octet-stream"
_WRITE_SIZE = MEGABYTE
"""Bytes that a thread writes at a time; an upload holds no more in memory."""
_CLOSE = {"connection": "close"}
"""Header of a refusal before the body was read: the server does not wait for the rest."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass
class IncomingUpload:
    """An upload whose beginning has arrived and looks like audio. `length` is the announced size in bytes, None without one."""

    head: list[bytes]
    is_whole: bool
    length: int | None
    receive: Receive


@dataclass(frozen=True)
class StoredUpload:
    """A complete upload: an open file at its beginning, its size in bytes, the digest of its bytes if requested."""

    file: BinaryIO
    size: int
    digest: str


async def begin_upload(scope: Scope, receive: Receive) -> IncomingUpload:
    """Read the beginning of an upload. ApiError `body_too_large`, `unsupported_media_type`, `unsupported_audio`."""
    headers = dict(scope["headers"])
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise ApiError(
            "unsupported_media_type", "The body has a Content-Encoding: send it uncompressed, without this header.", headers=_CLOSE
        )
    # The announced size is only a claim; `_write_all` counts what arrives.
    announced = headers.get(b"content-length", b"")
    length = int(announced) if announced.isdigit() else None
    _check_size(length or 0)
    head, size, more = [], 0, True
    while more and size < SNIFFED_BYTES:
        part, more = await _receive_part(receive)
        head.append(part)
        size += len(part)
    # A file that is not audio is refused after its first bytes, before 100 MB of it are sent.
    if sniff(b"".join(head)[:SNIFFED_BYTES]) is None:
        formats = "mp3, flac, wav, m4a, mp4, ogg and opus"
        raise ApiError("unsupported_audio", f"The first bytes show none of the formats {formats}.", headers=_CLOSE)
    return IncomingUpload(head, not more, length, receive)


class Spool:
    """The folder of a bounded number of concurrent uploads, for one event loop."""

    def __init__(self, folder: str, *, most: int, seconds: float) -> None:
        """An empty `folder` means the system's for temporary files. `seconds` is the time within which an upload must arrive."""
        self._folder = Path(folder or tempfile.gettempdir())
        if folder:
            with suppress(OSError):  # an upload tries again and reports the error
                make_private_folder(self._folder)
        self._most = most
        self._seconds = seconds
        self._held = 0

    @asynccontextmanager
    async def store(self, arriving: IncomingUpload, *, with_digest: bool = False) -> AsyncIterator[StoredUpload]:
        """Store the whole upload for the length of the block. ApiError `body_too_large`, `request_timeout`, `recognition_unavailable`."""
        # Refused before it is stored; the connection closes, because the rest of the body is not read.
        if self._held >= self._most:
            raise ApiError(
                "recognition_unavailable", f"The server is receiving {self._held} uploads already.", headers={**RETRY_SOON, **_CLOSE}
            )
        self._held += 1
        try:
            with self._create_file() as file:
                async with asyncio.timeout(self._seconds):
                    size, digest = await _write_all(arriving, file, hashlib.sha256() if with_digest else None)
                file.seek(0)
                yield StoredUpload(file, size, digest)
        except TimeoutError:
            raise ApiError("request_timeout", f"The upload did not arrive within {self._seconds:g} seconds.", headers=_CLOSE) from None
        except OSError as error:
            # Only a full disk is a state that passes; other errors are faults.
            if error.errno not in _FULL:
                raise
            log.exception("no room for an upload", folder=str(self._folder))
            raise ApiError(
                "recognition_unavailable", "The server has no disk space for uploads.", headers={**RETRY_SOON, **_CLOSE}
            ) from None
        finally:
            self._held -= 1

    def _create_file(self) -> BinaryIO:
        self._folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=self._folder, buffering=0)


async def _write_all(arriving: IncomingUpload, file: BinaryIO, digest: Any) -> tuple[int, str]:  # noqa: ANN401 - one of hashlib's objects
    return await write_parts(arriving.receive, file, digest, head=arriving.head, more=not arriving.is_whole, check_size=_check_size)


async def write_parts(
    receive: Receive,
    file: BinaryIO,
    digest: Any,  # noqa: ANN401 - one of hashlib's objects
    *,
    check_size: Callable[[int], None],
    head: Sequence[bytes] = (),
    more: bool = True,
) -> tuple[int, str]:
    """Write a body whose beginning `head` was read; return its size and its digest. `check_size` raises for too many bytes."""
    waiting, size = list(head), 0
    gathered = sum(len(part) for part in waiting)
    while True:
        if gathered >= _WRITE_SIZE or not more:
            block = b"".join(waiting)
            # A slow disk must not stop the event loop. The digest of 1 MB takes it milliseconds too.
            await asyncio.to_thread(_write_block, file, block, digest)
            size += len(block)
            waiting, gathered = [], 0
            if not more:
                return size, digest.hexdigest() if digest else ""
        part, more = await _receive_part(receive)
        waiting.append(part)
        gathered += len(part)
        check_size(size + gathered)


def _write_block(file: BinaryIO, block: bytes, digest: Any) -> None:  # noqa: ANN401 - one of hashlib's objects
    rest = memoryview(block)
    while rest:
        # An unbuffered file may write only a part.
        rest = rest[file.write(rest) :]
    if digest:
        digest.update(block)


async def _receive_part(receive: Receive) -> tuple[bytes, bool]:
    """Return a part of the body, and whether more follows."""
    message: Any = await receive()
    if message["type"] == "http.disconnect":
        raise ApiError("invalid_body", "The connection ended before the body was complete.")
    return message["body"], message["more_body"]


def _check_size(size: int) -> None:
    if size > LARGEST_UPLOAD:
        detail = f"The upload is larger than {LARGEST_UPLOAD} bytes: send a shorter clip, or its fingerprint."
        raise ApiError("body_too_large", detail, headers=_CLOSE)
