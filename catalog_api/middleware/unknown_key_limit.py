"""Limit the unknown keys that one client may try: above the limit the answer is 429 instead of 401, so that guessing is slow and visible.

Live keys of the same address are not affected: many callers share one behind NAT. All workers of the machine count together.
Out of scope: the check of a key (authentication.py), the rate of a live key (account_store/rate_limits.py).
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from catalog_api.client_address import find_client_address, find_network
from catalog_api.problems import ApiError

if TYPE_CHECKING:
    from account_store.rate_limits import LocalBuckets

_LARGEST_BUCKET = 2**63 - 1


class UnknownKeyLimit:
    """A bucket of `per_minute` tokens for each address, which refills within a minute."""

    def __init__(self, buckets: LocalBuckets, per_minute: int, address_header: str = "") -> None:
        """`address_header`: as in `client_address`. `per_minute` 0 means no limit."""
        self._buckets = buckets
        self._per_minute = per_minute
        self._address_header = address_header

    def refuse(self, scope: Any) -> ApiError:  # noqa: ANN401 - an HTTP scope
        """Count an unknown key; return the error to answer: `invalid_api_key`, or `rate_limited` above the limit."""
        unknown = ApiError("invalid_api_key", "The API key is unknown, revoked or expired.")
        address = find_client_address(scope, self._address_header)
        if not self._per_minute or not address:
            return unknown
        step = 60 / self._per_minute
        taken = self._buckets.take_now(_choose_bucket(find_network(address)), step, self._per_minute)
        if taken is None or taken[0]:
            return unknown
        # `taken[1]` is the time until the bucket is full; one token is there `per_minute - 1` steps earlier.
        wait = max(1, math.ceil(taken[1] - (self._per_minute - 1) * step))
        detail = f"More than {self._per_minute} unknown keys a minute came from this address; live keys go on working."
        return ApiError("rate_limited", detail, headers={"retry-after": str(wait)})

    async def close(self) -> None:
        """Give the buckets back."""
        await self._buckets.close()


def _choose_bucket(network: str) -> int:
    """Hash the network so that no caller can choose the bucket of another."""
    return 1 + int.from_bytes(hashlib.blake2b(network.encode(), digest_size=8).digest()) % _LARGEST_BUCKET
