"""A source's bytes as a file for FFmpeg, which ends where another decoder must continue.

The file ends at the next link of an Ogg stream, and after many bytes without sound (the broadcaster changed the codec). `reopen` returns
the next file. Out of scope: decoding.
"""

from __future__ import annotations

import time
from typing import Protocol

from audio_recognition.decoding import SNIFFED_BYTES, sniff
from stream_monitor.capture.errors import CaptureError, LastingCaptureError
from stream_monitor.capture.ogg import OggLinks

SILENT_BYTES = 64 * 1024
"""Most bytes read without a sample, after the first sample: four seconds of most streams."""
SILENT_HEAD_BYTES = 1024 * 1024
"""Most bytes read before the first sample: Ogg and FLAC may carry pictures."""
SILENT_SECONDS = 30.0
"""Longest time without a sample while bytes arrive."""
_FEWEST_BYTES = 2048
"""Bytes needed to recognise MPEG frames: three in a row of most streams."""
SILENT_CONTAINER_BYTES = 2 * 1024 * 1024
"""The same for formats that may carry pictures between the sound."""
CONTAINERS = ("mpegts", "m4a", "mp4")
_KNOWN = ("mp3", "aac", "ogg", "opus", "flac", "wav", *CONTAINERS)
_TS_PACKET = 188


class BytesSource(Protocol):
    """A source of bytes of sound."""

    def read(self) -> bytes:
        """Return at least a byte; empty at the end."""


class PartedSource(BytesSource, Protocol):
    """A source of parts, each of which needs a decoder of its own."""

    def begin_next(self) -> bool:
        """Begin the next part; return False when there is none."""


class Feed:
    """A file for PyAV: `read(n)`, not seekable."""

    def __init__(self, source: BytesSource, held: bytes = b"") -> None:
        """Begin with the bytes `held`, before those of the source."""
        self._source = source
        self._held = held
        """Fetched, and not split into links yet."""
        self._ready = b""
        """Bytes of this file, ready to be read."""
        self._next = b""
        """Bytes after the end of this file."""
        self._links: OggLinks | None = None
        self._undecoded = bytearray()
        """Read since the last sample: another decoder may be able to decode it."""
        self._most_undecoded = SILENT_HEAD_BYTES
        self._silent_bytes = SILENT_BYTES
        self._sound_at = time.monotonic()
        self._is_over = False

    def is_over(self) -> bool:
        """Return whether the source itself has ended."""
        return self._is_over

    def sniff(self) -> str:
        """Return the format of the next bytes. LastingCaptureError: it is not a supported one."""
        # Silence takes a few hundred bytes a second: a format that is known early must not wait for more.
        while (found := self._detect_format()) is None and len(self._held) < SNIFFED_BYTES and (piece := self._read_source()):
            self._held += piece
        if not self._held:
            raise CaptureError("the stream ended before any sound")
        found = found or _detect(self._held)
        if found not in _KNOWN:
            raise LastingCaptureError(_explain_format(self._held))
        if found in ("ogg", "opus"):
            self._links = OggLinks()
        if found in CONTAINERS:
            self._most_undecoded = self._silent_bytes = SILENT_CONTAINER_BYTES
        return found

    def _detect_format(self) -> str | None:
        """Return the format; None while too few bytes have come."""
        if len(self._held) < _FEWEST_BYTES and not self._held.startswith(b"OggS"):
            return None
        return _detect(self._held)

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; empty at the end of this file."""
        # For FFmpeg an empty read is the end of the file. `reopen` continues after the last sound, with another decoder.
        if len(self._undecoded) > self._most_undecoded:
            return b""
        while not self._ready:
            if self._next or not self._fetch():
                return b""
        data, self._ready = self._ready[:size], self._ready[size:]
        self._undecoded += data
        return data

    def _fetch(self) -> bool:
        """Fetch more bytes; return False at the end of the source."""
        data, self._held = self._held or self._read_source(), b""
        # Before Ogg is split: an empty part of a link is not the end of the source.
        self._is_over = not data
        if self._links is not None and data:
            data, following = self._links.feed(data)
            self._next = following or b""
        self._ready = data
        return not self._is_over

    def _read_source(self) -> bytes:
        data = self._source.read()
        # Before the format is known, too: a server that sends a byte now and then would never be reported.
        if time.monotonic() - self._sound_at > SILENT_SECONDS:
            raise CaptureError(f"the stream sends bytes, but no sound for {SILENT_SECONDS:.0f} s")
        return data

    def note_sound(self) -> None:
        """Note that the bytes read so far gave sound."""
        self._undecoded.clear()
        self._most_undecoded = self._silent_bytes
        self._sound_at = time.monotonic()

    def reopen(self) -> Feed:
        """Return the next file: from the next link on, else from after the last sound."""
        # The undecoded bytes come again: the new codec began somewhere among them.
        return Feed(self._source, self._next or bytes(self._undecoded) + self._ready + self._held)


def _detect(head: bytes) -> str | None:
    # First: the rest of a transport stream may look like anything.
    if len(head) > 2 * _TS_PACKET and head[0] == head[_TS_PACKET] == head[2 * _TS_PACKET] == ord("G"):
        return "mpegts"
    # MP4 before ADTS, which may occur within it by chance.
    found = sniff(head)
    return found if found in CONTAINERS else _detect_adts(head) or found


def _detect_adts(head: bytes) -> str | None:
    """Return `aac` when `head` holds consecutive ADTS frames; else None."""
    # A stream is joined anywhere, so the first frame begins within the head. A sync word alone is frequent by chance.
    at = head.find(b"\xff")
    while at >= 0:
        place, frames = at, 0
        while frames < 3 and place + 7 <= len(head) and head[place] == 0xFF and head[place + 1] & 0xF6 == 0xF0:  # noqa: PLR2004 -- sync word
            length = (head[place + 3] & 3) << 11 | head[place + 4] << 3 | head[place + 5] >> 5
            if length <= 7:  # noqa: PLR2004 -- no longer than its header
                break
            place, frames = place + length, frames + 1
        if frames == 3:  # noqa: PLR2004 -- three in a row are not chance
            return "aac"
        at = head.find(b"\xff", at + 1)
    return None


def _explain_format(head: bytes) -> str:
    """Return what is wrong with bytes of no supported format."""
    start = head.lstrip()[:512].lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "this is a web page, not an audio stream; give the address that the page's player uses"
    if start.startswith(b"flv"):
        return "this is Flash video (FLV), not an audio stream"
    return f"this is not an MP3, AAC, Ogg, Opus, FLAC or WAV stream; it begins with {head[:24]!r}"
