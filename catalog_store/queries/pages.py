"""Pages of list questions: limits, and encoded answers with the cursor of the next page.

A page continues after the place in its cursor, which is a value and not a row number. Pages therefore never overlap or skip items that are
in both builds when a new one is published in between.
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


def check_limit(limit: int, largest: int = MAX_LIMIT) -> int:
    """Return `limit`; InvalidQueryError when it is not within 1..largest."""
    if not 1 <= limit <= largest:
        raise InvalidQueryError(f"limit is {limit}: send 1 to {largest}")
    return limit
