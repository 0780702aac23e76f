"""What every list question shares: limits, and a page of encoded answers with the cursor of the next one.

A page goes on behind the place in its cursor, a value and not a row number, so that pages never overlap or skip what is in both builds when
a new one is published in between.
"""

from __future__ import annotations

from typing import NamedTuple

from catalog_store.errors import InvalidQueryError

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
"""Contract F2, F4."""


class BodyPage(NamedTuple):
    """`bodies`: encoded wire JSON of each item, in order; `next_cursor` is None exactly at the end."""

    bodies: list[bytes]
    next_cursor: str | None


def checked_limit(limit: int, largest: int = MAX_LIMIT) -> int:
    """`limit`; InvalidQueryError when it is not within 1..largest."""
    if not 1 <= limit <= largest:
        raise InvalidQueryError(f"limit is {limit}: 1 to {largest}")
    return limit
