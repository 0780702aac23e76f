"""Where the sound of a WAV file ends, so that what stands behind it is never gone through.

FFmpeg's reader looks at every chunk behind the sound before it gives the first sample: 100 MB of zeros are thirteen million chunks and 12 s
of CPU. Only as much is read here as finding the sound takes. What must not live here: whether a file is a WAV file (formats.py).
"""

from __future__ import annotations

import io
import struct
from typing import BinaryIO, Final

_FIRST_CHUNK: Final = 12
_MOST_CHUNKS: Final = 1_000
"""Before the sound; files have a handful."""
_UNKNOWN: Final = (0, 2**32 - 1)
"""Sizes that say nothing: of a file that was still being written, or one whose size stands elsewhere (RF64)."""


class WithoutTail:
    """A seekable file that seems to end at `end`; what FFmpeg asks of one."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        """The file stays the caller's."""
        self._file = file
        self._end = end

    def read(self, size: int) -> bytes:
        """At most so many bytes, none behind the end."""
        return self._file.read(max(0, min(size, self._end - self._file.tell())))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """To that offset; SEEK_END is where it seems to end."""
        return self._file.seek(self._end + offset) if whence == io.SEEK_END else self._file.seek(offset, whence)

    def tell(self) -> int:
        """The offset."""
        return self._file.tell()


def without_tail(file: BinaryIO) -> BinaryIO | WithoutTail:
    """A WAV file up to the end of its sound; the file itself where nobody knows that or nothing follows. At its beginning, both."""
    end, size = _end_of_sound(file), file.seek(0, io.SEEK_END)
    file.seek(0)
    return file if end is None or end >= size else WithoutTail(file, end)


def _end_of_sound(file: BinaryIO) -> int | None:
    at = _FIRST_CHUNK
    for _ in range(_MOST_CHUNKS):
        file.seek(at)
        head = file.read(8)
        if len(head) < len(b"dataSIZE"):
            return None
        name, size = struct.unpack("<4sI", head)
        if name == b"data":
            return None if size in _UNKNOWN else at + len(head) + size
        at += len(head) + size + (size & 1)
    return None
