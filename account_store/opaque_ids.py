"""Ids that callers get of what they made (streams, webhooks): UUIDs that sort by when they were made.

Version 7 of RFC 9562, so that a list by creation time, which is kept to the second, has an order within the second, too. What must not live
here: secrets, which must not be guessed (api_keys.py), ids of the catalog.
"""

from __future__ import annotations

import secrets
import time
import uuid

_VERSION, _VARIANT = 7, 0b10
_NANOSECONDS = 10**6
"""Of a millisecond; twelve bits tell a quarter of a microsecond of it."""


def new_opaque_id() -> str:
    """A UUID as text; those made later on this machine are larger."""
    milliseconds, rest = divmod(time.time_ns(), _NANOSECONDS)
    fraction = (rest << 12) // _NANOSECONDS
    number = milliseconds << 80 | _VERSION << 76 | fraction << 64 | _VARIANT << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=number))
