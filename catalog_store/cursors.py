"""Page cursors: opaque text that holds the end of the last page, bound to its query and protected against change.

Layout, base64url without padding over 48 bytes, little endian:

  0   1 byte    version, CURSOR_VERSION
  1   7 bytes   digest of the query the page belongs to
  8   8 bytes   float64 score of the last item; in lists its stamp (lists/dates.py), in random order the seed
  16  8 bytes   float64 popularity of the last item; in lists `unheard` (lists/dates.py), in random order the bits
  24  8 bytes   uint64 id of the last item; in random order the first place of the next page (lists/shuffle.py)
  32  16 bytes  keyed BLAKE2b over bytes 0..31

The place is a value, not a row number (keyset), so a cursor continues after a new snapshot was published. The key keeps honest callers from
sending invented places. It protects no secret: several servers of one catalog must share it to share cursors. A caller who knows the key
can seal any place, so a place is checked against the largest one of its list before the list sees it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from typing import TYPE_CHECKING, NamedTuple

from catalog_store.errors import InvalidCursorError

if TYPE_CHECKING:
    from collections.abc import Sequence

CURSOR_VERSION = 1
DEFAULT_KEY = b"catalog cursor 1"
"""The key of cursors when the operator sets none."""

_PLACE = struct.Struct("<B7sddQ")
_SEAL_BYTES = 16
_QUERY_BYTES = 7


class Place(NamedTuple):
    """The last item of a page in the total order score desc, popularity desc, id asc."""

    score: float
    popularity: float
    id: int

    @property
    def order(self) -> tuple[float, float, int]:
        """The sort key of a place in page order."""
        return (-self.score, -self.popularity, self.id)


LARGEST_PLACE = Place(2**53 - 1, 2**53 - 1, 2**63 - 1)
"""The bounds of every list: whole numbers that a float holds exactly, and ids that a database holds."""


class CursorCodec:
    """Writes and reads cursors under one key."""

    def __init__(self, key: bytes = DEFAULT_KEY) -> None:
        """Take `key`, 1 to 64 bytes."""
        self._key = key

    def encode(self, query: Sequence[str], place: Place) -> str:
        """Return the cursor for the page of `query` after `place`."""
        content = _PLACE.pack(CURSOR_VERSION, _hash_query(query), place.score, place.popularity, place.id)
        return base64.urlsafe_b64encode(content + self._seal(content)).rstrip(b"=").decode()

    def decode(self, query: Sequence[str], cursor: str, largest: Place = LARGEST_PLACE) -> Place:
        """Return where the page of `query` begins. No part of the place is negative, NaN, or above that of `largest`.

        InvalidCursorError for anything but a cursor that this codec wrote for that query, and for a place outside those bounds.
        """
        raw = _decode_text(cursor)
        content, seal = raw[: _PLACE.size], raw[_PLACE.size :]
        # `compare_digest` takes the same time wherever the seals differ, so a caller cannot guess one byte by byte.
        if len(raw) != _PLACE.size + _SEAL_BYTES or not hmac.compare_digest(seal, self._seal(content)):
            raise InvalidCursorError("this cursor was not issued by this server, or it was changed: begin again without a cursor")
        version, digest, score, popularity, identifier = _PLACE.unpack(content)
        if version != CURSOR_VERSION:
            raise InvalidCursorError("this cursor was made by another version: begin again without a cursor")
        if digest != _hash_query(query):
            raise InvalidCursorError("this cursor belongs to another query: send it with the values it was made for")
        place = Place(score, popularity, identifier)
        # The comparison is false for NaN, too.
        if not all(0 <= part <= most for part, most in zip(place, largest, strict=True)):
            raise InvalidCursorError("this cursor names a place at which no page ends: begin again without a cursor")
        return place

    def _seal(self, content: bytes) -> bytes:
        return hashlib.blake2b(content, digest_size=_SEAL_BYTES, key=self._key).digest()


def _hash_query(query: Sequence[str]) -> bytes:
    # Lengths between the parts: without them (ab, c) and (a, bc) would be one query. A lone surrogate must not fail the encoding.
    joined = b"".join(len(text).to_bytes(4, "little") + text for part in query for text in (part.encode("utf-8", "surrogatepass"),))
    return hashlib.blake2b(joined, digest_size=_QUERY_BYTES).digest()


def _decode_text(cursor: str) -> bytes:
    """Decode the text; empty unless it is the one canonical spelling, so no two texts mean the same cursor."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return b""
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == cursor else b""
