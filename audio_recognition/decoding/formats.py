"""The detection of the seven formats from a file's first bytes alone: names, extensions and media types may be wrong.

To add a format, add its mark and its demuxer here, its codecs to `CODECS` (decoder.py), and its name to the messages for callers
(catalog_api/problems.py, catalog_api/uploads.py). Only that demuxer is ever tried, so no file can select a reader that follows playlists or
opens other files.
"""

from __future__ import annotations

from typing import Final

DEMUXERS: Final = {"mp3": "mp3", "flac": "flac", "wav": "wav", "m4a": "mov", "mp4": "mov", "ogg": "ogg", "opus": "ogg"}
"""Format -> the demuxer that reads it."""

SNIFFED_BYTES: Final = 16_384
"""The bytes of a file's beginning that `sniff` needs; shorter files are judged by what they have."""

_FRAMES_IN_A_ROW: Final = 3
"""MPEG frame headers that must follow each other: two bytes alone look like one every few kilobytes of any data."""
_ID3_HEADER: Final = 10

_KBPS: Final = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
"""Bit rates of MPEG-1 layer III, from index 1."""
_KBPS_LOW: Final = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
"""Bit rates of MPEG-2 and 2.5."""
_MPEG_1: Final = 3
_HERTZ: Final = {_MPEG_1: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
"""Version bits -> sample rates."""
_SYNC_AND_LAYER: Final = (0xFFE6, 0xFFE2)
"""Mask and value of a header's first two bytes: eleven set bits, two for the version, layer III."""


def sniff(head: bytes) -> str | None:
    """Return the format (a key of `DEMUXERS`) of a file that starts with `head`, its first `SNIFFED_BYTES`; None if it is none of them."""
    body = head[read_id3_size(head) :]
    if body.startswith(b"fLaC"):
        return "flac"
    if body[:4] in {b"RIFF", b"RF64"} and body[8:12] == b"WAVE":
        return "wav"
    if body.startswith(b"OggS"):
        # A page begins with 27 bytes and, here, a table of one entry; then comes the first packet.
        return "opus" if body[28:36] == b"OpusHead" else "ogg"
    if body[4:8] == b"ftyp":
        return "m4a" if body[8:11] in {b"M4A", b"M4B"} else "mp4"
    # A tag longer than the head hides the format. Nearly always that is MPEG audio, and the demuxer finds out.
    return "mp3" if _has_frames(body) or (head.startswith(b"ID3") and not body) else None


def read_id3_size(head: bytes) -> int:
    """Return the bytes of an ID3v2 tag at the start, 0 without one."""
    if len(head) < _ID3_HEADER or not head.startswith(b"ID3"):
        return 0
    footer = _ID3_HEADER if head[5] & 0x10 else 0
    # The size has seven bits a byte, so that no byte of it looks like the start of an MPEG frame.
    return _ID3_HEADER + footer + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))


def _has_frames(body: bytes) -> bool:
    """Return whether MPEG audio frames follow each other in `body`, or fill it if it is shorter than `_FRAMES_IN_A_ROW`."""
    # Computed once. For each byte that may begin a frame, 16 KB of zeros took 0.2 s of the sniffing event loop.
    sound_at = len(body) - len(body.lstrip(b"\0"))
    at = body.find(b"\xff")
    while at >= 0:
        if _is_row(body, at, starts_file=at <= sound_at):
            return True
        at = body.find(b"\xff", at + 1)
    return False


def _is_row(body: bytes, at: int, *, starts_file: bool) -> bool:
    for found in range(_FRAMES_IN_A_ROW):
        length = _read_frame_length(body[at : at + 4])
        if length == 0:
            # A file of one or two frames ends after them, or continues with a tag.
            return found > 0 and starts_file and (at >= len(body) or body[at : at + 3] == b"TAG")
        at += length
    return True


def _read_frame_length(header: bytes) -> int:
    """Return the length of the MPEG layer III frame with that header; 0 if it is none (layers I and II, AAC's ADTS, other data)."""
    mask, mark = _SYNC_AND_LAYER
    if len(header) < 4 or int.from_bytes(header[:2], "big") & mask != mark:  # noqa: PLR2004 - bytes of a header
        return 0
    version, rate, bits, padding = header[1] >> 3 & 3, header[2] >> 2 & 3, header[2] >> 4, header[2] >> 1 & 1
    if version not in _HERTZ or rate == 3 or bits in {0, 15}:  # noqa: PLR2004 - values that the format reserves
        return 0
    # Bytes: samples / rate gives seconds, and 125 = 1000 / 8 turns kbit into bytes.
    kbps, samples = (_KBPS, 1152) if version == _MPEG_1 else (_KBPS_LOW, 576)
    return samples * kbps[bits - 1] * 125 // _HERTZ[version][rate] + padding
