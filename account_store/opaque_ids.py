"""Ids of streams and webhooks: UUIDs that sort by creation time (version 7, RFC 9562).

Creation times are stored to the second; the ids keep the order within a second. Out of scope: secrets, which nobody may guess
(api_keys.py), ids of the catalog.
"""

from __future__ import annotations

import secrets
import time
import uuid

_VERSION, _VARIANT = 7, 0b10
_NANOSECONDS = 10**6
"""Nanoseconds of a millisecond; twelve bits resolve a quarter of a microsecond."""


def generate_opaque_id() -> str:
    """Return a UUID as text; later ones of this machine are larger."""
    milliseconds, rest = divmod(time.time_ns(), _NANOSECONDS)
    fraction = (rest << 12) // _NANOSECONDS
    # RFC 9562, 6.2, method 3: the 12 bits after the version hold the fraction of the millisecond instead of random ones.
    number = milliseconds << 80 | _VERSION << 76 | fraction << 64 | _VARIANT << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=number))
