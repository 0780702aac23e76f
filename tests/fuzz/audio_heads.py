"""Fuzz targets of the parts of an upload that are read outside the sandbox: the format, and the end of the sound in a WAV file."""

from __future__ import annotations

import io

import numpy as np

from audio_recognition.decoding.formats import DEMUXERS, SNIFFED_BYTES, sniff
from audio_recognition.decoding.riff import hide_tail
from tests.audio_recognition.audio import ENCODERS, encoded, melody
from tests.fuzz import Target

_SEED_BYTES = 2048


def read_head(content: bytes) -> None:
    """Require a known format or none, and one end of the sound of a WAV file wherever reading begins."""
    assert sniff(content[:SNIFFED_BYTES]) in {None, *DEMUXERS}
    file = hide_tail(io.BytesIO(content))
    end = file.seek(0, io.SEEK_END)
    assert 0 <= end <= len(content)
    for start in (0, end // 2, end, len(content)):
        file.seek(start)
        assert file.read(len(content)) == content[start:end]
        assert file.read(1) == b""


def _heads() -> list[bytes]:
    stereo = np.stack([melody(0.5, rate=48000)] * 2, axis=1)
    files = [encoded(stereo, form, rate=48000)[:_SEED_BYTES] for form in ENCODERS]
    tail = b"RIFF\x2c\0\0\0WAVEfmt \x04\0\0\0\1\0\1\0data\4\0\0\0\1\2\3\4LIST\2\0\0\0ab"
    return [*files, tail, b"ID3\4\0\0\0\0\0\x0a" + bytes(10) + files[0], bytes(500) + files[0]]


TARGETS = (
    Target("audio_heads", read_head, _heads, lambda: [b"RIFF", b"RF64", b"WAVE", b"data", b"OggS", b"OpusHead", b"fLaC", b"ftypM4A"]),
)
