"""Places of cursors that hold an opaque id: a UUID of 128 bits in the three numbers of a place (catalog_store/cursors.py)."""

from __future__ import annotations

from uuid import UUID

from catalog_store.cursors import Place

_BITS = 53
"""Largest size, in bits, of whole numbers that a float represents exactly."""
_REST = 128 - 2 * _BITS


def encode_place(identity: str) -> Place:
    """Return a cursor's place that holds the whole id."""
    number = UUID(identity).int
    return Place(number >> (_BITS + _REST), number >> _REST & (2**_BITS - 1), number & (2**_REST - 1))


def decode_place(place: Place) -> str:
    """Return the id that `encode_place` was given."""
    return str(UUID(int=(int(place.score) << (_BITS + _REST)) | (int(place.popularity) << _REST) | place.id))
