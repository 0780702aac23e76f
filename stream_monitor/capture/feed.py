"""A source's bytes as a file that FFmpeg reads, which ends where another decoder has to go on.

It ends at the next link of an Ogg stream, and when much has been read without any sound coming out (the broadcaster changed the codec).
`reopened` is the file of what follows. What must not live here: decoding.
"""

from __future__ import annotations

import time
from typing import Protocol

from audio_recognition.decoding import SNIFFED_BYTES, sniff
from stream_monitor.capture.errors import CaptureError, LastingCaptureError
from stream_monitor.capture.ogg import OggLinks

SILENT_BYTES = 64 * 1024
"""Read without a sample coming out, after there were some: four seconds of most streams."""
SILENT_HEAD_BYTES = 1024 * 1024
"""The same, before the first sample: Ogg and FLAC may carry pictures."""
SILENT_SECONDS = 30.0
"""Without a sample, though bytes keep coming."""
_FEWEST_BYTES = 2048
"""To tell MPEG frames by: three in a row of most streams."""
_KNOWN = ("mp3", "aac", "ogg", "opus", "flac", "wav")


class BytesSource(Protocol):
    """Where bytes of sound come from."""

    def read(self) -> bytes:
        """At least a byte; empty at the end."""


class Feed:
    """What PyAV takes for a file: `read(n)`, not seekable."""

    def __init__(self, source: BytesSource, held: bytes = b"") -> None:
        """`held`: bytes that come before those of the source."""
        self._source = source
        self._held = held
        """Fetched, and not looked at yet."""
        self._ready = b""
        """Of this file, to be read."""
        self._next = b""
        """Behind where this file ends."""
        self._links: OggLinks | None = None
        self._unheard = bytearray()
        """Read since the last sample: another decoder may make something of it."""
        self._most_unheard = SILENT_HEAD_BYTES
        self._heard_at = time.monotonic()
        self._is_over = False

    def is_over(self) -> bool:
        """Whether the source itself has ended."""
        return self._is_over

    def sniff(self) -> str:
        """The format of what follows, by its first bytes. LastingCaptureError when it is none that is taken."""
        # Silence takes a few hundred bytes a second: what is known early must not wait for more.
        while (found := self._told()) is None and len(self._held) < SNIFFED_BYTES and (piece := self._source.read()):
            self._held += piece
        if not self._held:
            raise CaptureError("the stream ended before any sound")
        found = found or _adts(self._held) or sniff(self._held)
        if found not in _KNOWN:
            raise LastingCaptureError(_other(self._held))
        if found in ("ogg", "opus"):
            self._links = OggLinks()
        return found

    def _told(self) -> str | None:
        """The format, if enough has come to tell it."""
        if len(self._held) < _FEWEST_BYTES and not self._held.startswith(b"OggS"):
            return None
        return _adts(self._held) or sniff(self._held)

    def read(self, size: int) -> bytes:
        """At most `size` bytes; empty at the end of this file."""
        if len(self._unheard) > self._most_unheard:
            return b""
        while not self._ready:
            if self._next or not self._fetch():
                return b""
        data, self._ready = self._ready[:size], self._ready[size:]
        self._unheard += data
        return data

    def _fetch(self) -> bool:
        """Read on; False at the end of the source."""
        data, self._held = self._held or self._source.read(), b""
        if time.monotonic() - self._heard_at > SILENT_SECONDS:
            raise CaptureError(f"bytes come, but no sound for {SILENT_SECONDS:.0f} s")
        self._is_over = not data
        if self._links is not None and data:
            data, following = self._links.feed(data)
            self._next = following or b""
        self._ready = data
        return not self._is_over

    def heard(self) -> None:
        """Sound came out of what was read."""
        self._unheard.clear()
        self._most_unheard = SILENT_BYTES
        self._heard_at = time.monotonic()

    def reopened(self) -> Feed:
        """The file of what follows: from the next link on, else from where the last sound came out."""
        return Feed(self._source, self._next or bytes(self._unheard) + self._ready + self._held)


def _adts(head: bytes) -> str | None:
    """`aac` when frames of ADTS follow each other in `head`."""
    at = head.find(b"\xff")
    while at >= 0:
        place, frames = at, 0
        while frames < 3 and place + 7 <= len(head) and head[place] == 0xFF and head[place + 1] & 0xF6 == 0xF0:  # noqa: PLR2004 -- sync word
            length = (head[place + 3] & 3) << 11 | head[place + 4] << 3 | head[place + 5] >> 5
            if length <= 7:  # noqa: PLR2004 -- no longer than its header
                break
            place, frames = place + length, frames + 1
        if frames == 3:  # noqa: PLR2004 -- in a row: no chance
            return "aac"
        at = head.find(b"\xff", at + 1)
    return None


def _other(head: bytes) -> str:
    """What is wrong with bytes that are no format of ours."""
    start = head.lstrip()[:512].lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "this is a web page, not an audio stream; give the address that the page's player uses"
    if start.startswith(b"flv"):
        return "this is Flash video (FLV), not an audio stream"
    if head[:1] == b"G" and head[188:189] == b"G":
        return "this is an MPEG transport stream; give the address of an MP3, AAC, Ogg, Opus or FLAC stream instead"
    return f"this is no MP3, AAC, Ogg, Opus, FLAC or WAV stream; it begins with {head[:24]!r}"
