"""How many unknown keys a client may try: above it the answer is 429 instead of 401, so that guessing is slow and seen.

Live keys of the same address are not touched: many callers share one behind NAT. Counted over all workers of the machine. What must not
live here: the check of a key (middleware/authentication.py), the rate of a live key (account_store/rate_limits.py).
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from catalog_api.client_address import client_address, network_of
from catalog_api.problems import ApiError

if TYPE_CHECKING:
    from account_store.rate_limits import LocalBuckets

_LARGEST_KEY = 2**63 - 1


class KeyGuesses:
    """A bucket of `per_minute` tokens for each address, which fills in a minute."""

    def __init__(self, buckets: LocalBuckets, per_minute: int, address_header: str = "") -> None:
        """`address_header`: as in `client_address`. `per_minute` 0: as many as they like."""
        self._buckets = buckets
        self._per_minute = per_minute
        self._address_header = address_header

    def refusal(self, scope: Any) -> ApiError:  # noqa: ANN401 - an HTTP scope
        """Count an unknown key; what to answer: `invalid_api_key`, or `rate_limited` when too many came from there."""
        unknown = ApiError("invalid_api_key", "The API key is unknown or revoked.")
        address = client_address(scope, self._address_header)
        if not self._per_minute or not address:
            return unknown
        step = 60 / self._per_minute
        taken = self._buckets.take_now(_bucket(network_of(address)), step, self._per_minute)
        if taken is None or taken[0]:
            return unknown
        wait = max(1, math.ceil(taken[1] - (self._per_minute - 1) * step))
        detail = f"More than {self._per_minute} unknown keys a minute came from this address; live keys go on working."
        return ApiError("rate_limited", detail, headers={"retry-after": str(wait)})

    async def close(self) -> None:
        """Give the buckets back."""
        await self._buckets.close()


def _bucket(network: str) -> int:
    """By a hash that callers cannot steer into the bucket of another: all of its 63 bits differ with any bit of the network."""
    return 1 + int.from_bytes(hashlib.blake2b(network.encode(), digest_size=8).digest()) % _LARGEST_KEY
