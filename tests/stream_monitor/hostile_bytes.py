"""Hostile bytes that a stream may send instead of sound."""

from __future__ import annotations

import numpy as np

from tests.stream_monitor.capture.test_sound import made

HOSTILE = {
    "noise behind a head of mp3": made("mp3")[:4000] + bytes(np.random.default_rng(1).bytes(600_000)),
    "noise behind a head of ogg": made("ogg")[:4000] + bytes(np.random.default_rng(2).bytes(600_000)),
    "pages of Ogg that claim no sound": b"OggS\0\0" + bytes(20) + b"\xff" + b"\xff" * 255 + bytes(100_000),
    "a WAV that claims 4 GB": b"RIFF" + b"\xff" * 4 + b"WAVEfmt \x10\0\0\0\x01\0" + b"\xff" * 12 + b"\x10\0data" + b"\xff" * 50_000,
    "a FLAC with a picture that never ends": b"fLaC\x06\xff\xff\xff" + bytes(400_000),
    "a tag that claims 256 MB": b"ID3\x04\0\0\x7f\x7f\x7f\x7f" + bytes(300_000),
    "a playlist of a file": b"#EXTM3U\nfile:///etc/passwd\n" * 1000,
    "nothing but frame heads": b"\xff\xfb\x90\x64" * 50_000,
    "nothing but ADTS heads": b"\xff\xf1\x50\x80\x00\x1f\xfc" * 50_000,
}
