"""The decision whether and when a request is sent again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from music_catalog.operation import Operation

_BUSY = frozenset({429, 503})
"""The server did nothing: a repeat is always safe."""
_UNKNOWN_OUTCOME = frozenset({500, 502, 504})
_SPENT = frozenset({"quota_exceeded"})
"""Codes of a 429 that no wait of a client resolves: credits come back next month."""


@dataclass(frozen=True)
class RetryPolicy:
    """Number of times that a request is sent, and the longest wait between two in seconds. Waits double from `first_wait`."""

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 60.0

    def find_wait(
        self, operation: Operation[Any], attempt: int, status: int | None, *, code: str = "", retry_after: float | None = None
    ) -> float | None:
        """Return the seconds until the next attempt; None when there is none. `status` is None when the connection broke."""
        if attempt >= self.attempts or code in _SPENT:
            return None
        is_safe = status in _BUSY or ((status is None or status in _UNKNOWN_OUTCOME) and operation.is_repeatable)
        if not is_safe or (retry_after is not None and retry_after > self.longest_wait):
            return None
        if retry_after is not None:
            return retry_after
        # Up to half as long again, so that clients that failed together do not come back together.
        doubled: float = self.first_wait * 2 ** (attempt - 1)
        return min(self.longest_wait, doubled * (1 + random.random() / 2))  # noqa: S311 - no secret
