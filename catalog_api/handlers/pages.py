"""Pages (contract C2, F2, F4): `{"results": [...], "next_cursor": ...}`, and the places of what has a UUID for an id."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from catalog_api.answers import Answer
from catalog_store.cursors import Place


def page(items: Sequence[bytes], next_cursor: str | None) -> Answer:
    """A 200 with the items as they are encoded."""
    return Answer(b'{"results":[%s],"next_cursor":%s}' % (b",".join(items), msgspec.json.encode(next_cursor)))


_BITS = 53
"""Whole numbers up to so many bits are exact in the fractions of a place."""
_REST = 128 - 2 * _BITS


def place_of_uuid(identity: str) -> Place:
    """A cursor's place that holds the whole id."""
    number = UUID(identity).int
    return Place(number >> (_BITS + _REST), number >> _REST & (2**_BITS - 1), number & (2**_REST - 1))


def uuid_of_place(place: Place) -> str:
    """The id that `place_of_uuid` was given."""
    return str(UUID(int=(int(place.score) << (_BITS + _REST)) | (int(place.popularity) << _REST) | place.id))
