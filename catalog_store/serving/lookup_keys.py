"""Lookup keys as 64-bit hashes: ISRCs, the ids of every platform, name keys and titles of releases; ISWCs as integers.

A hash only shows where to look: the reader compares the text itself. catalog_store/identifiers.py normalises and checks values before they
reach these functions.
"""

from __future__ import annotations

from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from xxhash import xxh3_64_intdigest

from catalog_store.platforms import CATALOG_B, SHIPPED_PLATFORMS, VIDEO_A

if TYPE_CHECKING:
    from numpy.typing import NDArray

ISRC = "isrc"
KNOWN_SOURCES = (*SHIPPED_PLATFORMS, VIDEO_A)
"""The sources that the format numbers. Every other source has a number made from its key, so no number depends on the others."""
KEY_SPACES = (ISRC, *KNOWN_SOURCES)
NAME_KINDS = ("artist", "label", "genre")
BARCODE, TITLE = "barcode", "title"
ENTITY_SPACES = (BARCODE, TITLE, *(f"{kind} on {platform}" for kind in ("release", "artist") for platform in SHIPPED_PLATFORMS))
"""Kinds of keys of releases and artists that the format numbers, in the order of table `entity_key`."""

# Seeds of names follow those of KEY_SPACES, so a name and a platform id of the same text get different hashes.
_NAME_SPACE = len(KEY_SPACES)


def number_source(source: str) -> int:
    """Return the number of a source in table `retired_key`."""
    return _number(KNOWN_SOURCES, source)


def number_key_space(space: str) -> int:
    """Return the seed for keys of this space: ISRC or a source."""
    return _number(KEY_SPACES, space)


def number_entity_space(space: str) -> int:
    """Return the number of a kind of keys of releases and artists: BARCODE, TITLE, `<kind> on <platform>`."""
    return _number(ENTITY_SPACES, space)


@cache
def _number(known: tuple[str, ...], name: str) -> int:
    # Above all indexes, and an integer that SQLite accepts.
    return known.index(name) if name in known else (xxh3_64_intdigest(name.encode()) >> 1) | 1 << 32


def normalize_key(space: str, text: str) -> str:
    """Normalise a key as the catalog stores it: UUIDs in lower case, and half a surrogate pair, which no id contains, replaced."""
    text = text.lower() if space == CATALOG_B else text
    return text if text.isascii() else text.encode(errors="replace").decode()


def hash_key(space: int, text: str) -> int:
    """Return the 64-bit hash of a key: XXH3, seeded with `space`, the number of a space of keys."""
    # XXH3 takes .04 us a key; a mixing function in plain Python took .7. The seed keeps equal ids of two platforms apart.
    return xxh3_64_intdigest(text.encode(), space)


def hash_keys(space: int, texts: pl.Series) -> NDArray[np.uint64]:
    """Return the `hash_key` of each text."""
    # No Python code for each key: a third of the time.
    return np.fromiter(map(xxh3_64_intdigest, texts.cast(pl.Binary), repeat(space)), np.uint64, len(texts))


def hash_name(kind: int, key: str) -> int:
    """Return the hash of a name key as an integer that SQLite accepts (63 bits); `kind` is an index in NAME_KINDS."""
    # SQLite integers are signed, so one bit is dropped.
    return hash_key(_NAME_SPACE + kind, key) >> 1


def hash_names(kind: int, keys: pl.Series) -> NDArray[np.int64]:
    """Return the `hash_name` of each key."""
    return (hash_keys(_NAME_SPACE + kind, keys) >> np.uint64(1)).astype(np.int64)


def hash_title(artist_id: int, title_key: str) -> int:
    """Return the hash of a release's title key as an integer that SQLite accepts. Releases of one artist and title share it."""
    return hash_key(_NAME_SPACE + len(NAME_KINDS), f"{artist_id} {title_key}") >> 1


def hash_titles(titles: pl.DataFrame) -> NDArray[np.int64]:
    """Return the `hash_title` of each row of [artist_id, title_key]."""
    return hash_names(len(NAME_KINDS), titles.select(pl.concat_str("artist_id", "title_key", separator=" ")).to_series())


def encode_iswc(iswc: str) -> int:
    """Return a bare ISWC as an integer: its ten digits."""
    return int(iswc[1:])


def decode_iswc(code: int) -> str:
    """Return the bare ISWC of a stored code."""
    return f"T{code:010d}"
