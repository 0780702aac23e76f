"""Splits an Ogg stream into its links: Icecast sources begin a new link with each title and with another codec.

Page layout (RFC 3533): "OggS", version, flags, granule (8), serial (4), sequence (4), checksum (4), segment count, that many lengths, data.
"""

from __future__ import annotations

_MARK = b"OggS"
_HEADER = 27
_FLAGS, _SEGMENTS = 5, 26
_BEGINS = 0x02


class OggLinks:
    """Follows the pages of one link and finds the beginning of the next one."""

    def __init__(self) -> None:
        """Start at a page, or before one."""
        self._left = 0
        """Bytes left of the present page."""
        self._held = b""
        self._has_sound = False

    def feed(self, data: bytes) -> tuple[bytes, bytes | None]:
        """Return the part of `data` in this link, and the part that begins the next one (None: not yet)."""
        kept: list[bytes] = []
        data, self._held = self._held + data, b""
        while data:
            if self._left == 0 and not self._is_at_page(data):
                start = data.find(_MARK, 1)
                is_partial = len(data) < _HEADER or (data.startswith(_MARK) and len(data) < _HEADER + data[_SEGMENTS])
                if is_partial and start < 0:
                    self._held = data
                    break
                self._left = start if start > 0 else len(data)  # out of step: skip to the next mark
            elif self._left == 0:
                begins = bool(data[_FLAGS] & _BEGINS)
                # A link begins with one such page for each of its codecs, so only one after sound begins the next link.
                if begins and self._has_sound:
                    return b"".join(kept), data
                self._has_sound |= not begins
                lengths = data[_HEADER : _HEADER + data[_SEGMENTS]]
                self._left = _HEADER + len(lengths) + sum(lengths)
            piece, data = data[: self._left], data[self._left :]
            self._left -= len(piece)
            kept.append(piece)
        return b"".join(kept), None

    def _is_at_page(self, data: bytes) -> bool:
        return data.startswith(_MARK) and len(data) >= _HEADER and len(data) >= _HEADER + data[_SEGMENTS]
