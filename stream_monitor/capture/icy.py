"""Takes Shoutcast's titles out of a stream: every `icy-metaint` bytes stands one length byte (times 16) and that much text."""

from __future__ import annotations

_UNIT = 16


class MetadataStripper:
    """Feed it what arrives; it answers what is sound. Titles are dropped: they are the broadcaster's claim, not what is heard."""

    def __init__(self, interval: int) -> None:
        """`interval`: bytes of sound between titles."""
        self._interval = interval
        self._sound_left = interval
        self._text_left = 0

    def feed(self, data: bytes) -> bytes:
        """The sound in `data`; possibly nothing."""
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
                self._text_left, data = data[0] * _UNIT, data[1:]
                self._sound_left = self._interval
        return b"".join(kept)
