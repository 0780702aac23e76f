"""Files in all formats, and ways to break them."""

from __future__ import annotations

import functools
import io
import struct

import numpy as np

from audio_recognition.decoding import decode
from tests.audio_recognition.audio import encoded, melody

SECONDS = 9.0
RATE = 44100


@functools.cache
def stereo() -> np.ndarray:
    """Return `int16[n, 2]`: the same on both sides."""
    return np.stack([melody(SECONDS, rate=RATE)] * 2, axis=1)


@functools.cache
def file_of(form: str) -> bytes:
    return encoded(stereo(), form, rate=RATE)


def heard(data: bytes, start_seconds: float = 0.0, seconds: float | None = None) -> np.ndarray:
    """Return all samples of a window, `int16[n]`."""
    return np.concatenate([np.empty(0, np.int16), *decode(io.BytesIO(data), start_seconds=start_seconds, seconds=seconds)])


def with_hole(data: bytes, *, start: float = 0.5, size: int = 4000) -> bytes:
    """Return the data with zeros instead of `size` bytes in the middle."""
    at = int(len(data) * start)
    return data[:at] + bytes(size) + data[at + size :]


def wav(sound: bytes, *, rate: int = RATE, channels: int = 1, bits: int = 16, coding: int = 1, claimed: int | None = None) -> bytes:
    """Return a hand-made WAV file, whose header claims whatever the arguments say."""
    align = channels * bits // 8
    size = len(sound) if claimed is None else claimed
    form = struct.pack("<HHIIHH", coding, channels, rate, rate * align & 0xFFFFFFFF, align & 0xFFFF, bits)
    chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", size)
    return b"RIFF" + struct.pack("<I", (size + 36) & 0xFFFFFFFF) + chunks + sound


def id3(size: int) -> bytes:
    """Return an ID3v2 tag with that many bytes of padding."""
    return b"ID3\4\0\0" + bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0)) + bytes(size)
