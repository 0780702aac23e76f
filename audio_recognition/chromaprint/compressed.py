"""The text form of a fingerprint, as fpcalc prints it and clients send it: URL-safe base64 of Chromaprint's bit packing.

Layout: one byte algorithm, three bytes item count (big-endian). Then for each item, XORed with the one before, the gaps between its set
bits (lowest bit first, counted from 1) and a 0. Gaps are packed in 3 bits each, lowest bit first, padded to a byte. A gap of 7 or more is
written as 7, and its rest follows in 5 bits in a second run of bits. The text comes from strangers, so its claims are checked before memory
is allocated.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALGORITHM_2: Final = 1
"""The number of this package's algorithm in the text, which counts from 0."""
MOST_ITEMS: Final = 2**24 - 1
"""The largest count in three bytes."""

_HEADER_BYTES: Final = 4
_ITEM_BITS: Final = 32
_GAP_BITS: Final = 3
_LONG_GAP: Final = 2**_GAP_BITS - 1
_REST_BITS: Final = 5


def encode(items: NDArray[np.uint32], *, algorithm: int = ALGORITHM_2) -> str:
    """Return the text of `uint32[n]` items."""
    if len(items) > MOST_ITEMS:
        raise ValueError(f"a compressed fingerprint holds at most {MOST_ITEMS} items, got {len(items)}")
    # Neighbouring items share most of their bits, so few gaps are left.
    changes = np.bitwise_xor(items, np.concatenate([np.zeros(1, np.uint32), items[:-1]])) if len(items) else items
    item, bit = np.nonzero(_unpack_bits(changes.astype("<u4").view(np.uint8)).reshape(-1, _ITEM_BITS))
    before = np.where(np.diff(item, prepend=-1) == 0, np.roll(bit, 1), -1)
    gaps = np.zeros(len(bit) + len(items), np.uint8)
    gaps[np.arange(len(bit)) + item] = bit - before
    # Two runs of bits: all gaps first, then the rests of the long ones.
    long = gaps[gaps >= _LONG_GAP]
    packed = _pack(np.minimum(gaps, _LONG_GAP), _GAP_BITS) + _pack(long - _LONG_GAP, _REST_BITS)
    header = bytes([algorithm]) + len(items).to_bytes(3, "big")
    return base64.urlsafe_b64encode(header + packed).rstrip(b"=").decode()


def decode(text: str, *, most_items: int = MOST_ITEMS) -> tuple[int, NDArray[np.uint32]]:
    """Return the algorithm that the text names and its `uint32[n]` items.

    ValueError if the text is not a compressed fingerprint or claims more than `most_items`.
    """
    data = _decode_base64(text)
    if len(data) < _HEADER_BYTES:
        raise ValueError(
            f"the text is not a compressed fingerprint: its {len(data)} bytes are fewer than the {_HEADER_BYTES} of the header"
        )
    algorithm, count = data[0], int.from_bytes(data[1:_HEADER_BYTES], "big")
    if count > most_items:
        raise ValueError(f"the compressed fingerprint claims {count} items: {most_items} are the most that are read")
    body = np.frombuffer(data, np.uint8, offset=_HEADER_BYTES)
    # Each item has at least one 0, so the text bounds `count` before memory is allocated for it.
    values = _unpack(body, _GAP_BITS)
    ends = np.flatnonzero(values == 0)
    if len(ends) < count:
        raise ValueError(f"the compressed fingerprint is cut off: {len(ends)} of {count} items are there")
    ends = ends[:count]
    gaps = values[: ends[-1] + 1 if count else 0].astype(np.int64)
    long = np.flatnonzero(gaps == _LONG_GAP)
    rest_at = _count_bytes(len(gaps), _GAP_BITS)
    # A text has exactly the bytes that its items take: another length means damage.
    if len(body) != rest_at + _count_bytes(len(long), _REST_BITS):
        raise ValueError(f"the compressed fingerprint has {len(body)} bytes after its header, but its items take another number")
    gaps[long] += _unpack(body[rest_at:], _REST_BITS)[: len(long)]
    return algorithm, np.bitwise_xor.accumulate(_decode_changes(gaps, ends))


def _decode_changes(gaps: NDArray[np.int64], ends: NDArray[np.intp]) -> NDArray[np.uint32]:
    """Return the items with the set bits of `gaps`; each item's gaps end with a 0, at one of `ends`."""
    reached = np.cumsum(gaps)
    is_gap = gaps > 0
    item = np.searchsorted(ends, np.flatnonzero(is_gap))
    before = np.concatenate([np.zeros(1, np.int64), reached[ends]])
    bit = reached[is_gap] - before[item] - 1
    if len(bit) and bit.max() >= _ITEM_BITS:
        raise ValueError(f"the compressed fingerprint sets bit {bit.max()}, but an item has {_ITEM_BITS} bits")
    is_set = np.zeros((len(ends), _ITEM_BITS), np.uint8)
    is_set[item, bit] = 1
    return np.packbits(is_set, bitorder="little").view("<u4").astype(np.uint32)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"the text is not a compressed fingerprint: it is not URL-safe base64 ({error})") from None


def _unpack_bits(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.unpackbits(data, bitorder="little")


def _count_bytes(values: int, bits: int) -> int:
    return (values * bits + 7) // 8


def _pack(values: NDArray[np.uint8], bits: int) -> bytes:
    """Pack values of that many bits one after the other, lowest bit first; zeros fill the last byte."""
    return np.packbits(np.unpackbits(values[:, None], axis=1, bitorder="little", count=bits), bitorder="little").tobytes()


def _unpack(data: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Return the values of that many bits in `data`; a remainder at its end is dropped."""
    flat = _unpack_bits(data)
    return np.packbits(flat[: len(flat) // bits * bits].reshape(-1, bits), axis=1, bitorder="little").reshape(-1)
