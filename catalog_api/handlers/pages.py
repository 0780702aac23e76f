"""A page of encoded items (contract C2, F2, F4): `{"results": [...], "next_cursor": ...}`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from catalog_api.answers import Answer


def page(items: Sequence[bytes], next_cursor: str | None) -> Answer:
    """A 200 with the items as they are encoded."""
    return Answer(b'{"results":[%s],"next_cursor":%s}' % (b",".join(items), msgspec.json.encode(next_cursor)))
