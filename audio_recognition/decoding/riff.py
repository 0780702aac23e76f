"""The end of the sound in a WAV file, so that data after it is never read.

FFmpeg's reader scans every chunk after the sound before it returns the first sample: 100 MB of zeros are thirteen million chunks and 12 s
of CPU. This module reads only up to the sound. Whether a file is a WAV file is decided in formats.py.
"""

from __future__ import annotations

import io
import struct
from typing import BinaryIO, Final

_FIRST_CHUNK: Final = 12
_MOST_CHUNKS: Final = 1_000
"""Before the sound; files have a handful."""
_UNKNOWN: Final = (0, 2**32 - 1)
"""Sizes without information: a file that was still being written, or one whose size is elsewhere (RF64)."""


class TruncatedFile:
    """A seekable file that seems to end at `end`, with the methods that FFmpeg needs."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        """Wrap `file`, which stays the caller's."""
        self._file = file
        self._end = end

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, none after the end."""
        return self._file.read(max(0, min(size, self._end - self._file.tell())))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to that offset; SEEK_END is the apparent end."""
        return self._file.seek(self._end + offset) if whence == io.SEEK_END else self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the offset."""
        return self._file.tell()


def hide_tail(file: BinaryIO) -> BinaryIO | TruncatedFile:
    """Return a WAV file up to the end of its sound, or the file itself when the end is unknown; both at the beginning."""
    end, size = _find_end_of_sound(file), file.seek(0, io.SEEK_END)
    file.seek(0)
    return file if end is None or end >= size else TruncatedFile(file, end)


def _find_end_of_sound(file: BinaryIO) -> int | None:
    at = _FIRST_CHUNK
    for _ in range(_MOST_CHUNKS):
        file.seek(at)
        head = file.read(8)
        # The file ends before its sound: the decoder says what is wrong with it.
        if len(head) < len(b"dataSIZE"):
            return None
        name, size = struct.unpack("<4sI", head)
        if name == b"data":
            return None if size in _UNKNOWN else at + len(head) + size
        # RIFF pads chunks to an even length.
        at += len(head) + size + (size & 1)
    return None
