"""Removes Shoutcast's titles from a stream: after every `icy-metaint` bytes come a length byte (times 16) and that much text."""

from __future__ import annotations

_UNIT = 16


class MetadataStripper:
    """Separates sound from titles. It drops titles: they are the broadcaster's claim, not a detection."""

    def __init__(self, interval: int) -> None:
        """Expect titles every `interval` bytes of sound."""
        self._interval = interval
        self._sound_left = interval
        self._text_left = 0

    def feed(self, data: bytes) -> bytes:
        """Return the sound in `data`, which may be empty."""
        kept = []
        while data:
            if self._text_left:
                skipped = min(self._text_left, len(data))
                self._text_left -= skipped
                data = data[skipped:]
            elif self._sound_left:
                piece, data = data[: self._sound_left], data[self._sound_left :]
                self._sound_left -= len(piece)
                kept.append(piece)
            else:
                # The length byte may come alone: a piece of the stream ends anywhere.
                self._text_left, data = data[0] * _UNIT, data[1:]
                self._sound_left = self._interval
        return b"".join(kept)
