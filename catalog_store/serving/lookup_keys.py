"""Lookup keys as 64-bit hashes: ISRCs, the ids of every platform, name keys and titles of releases; ISWCs as integers.

A hash only shows where to look: the reader compares the text itself. catalog_store/identifiers.py normalises and checks values before they
reach these functions.
"""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from catalog_store.platforms import CATALOG_B, CATALOG_PLATFORMS, LINK_SOURCES

ISRC = "isrc"
KEY_SPACES = (ISRC, *LINK_SOURCES)
NAME_KINDS = ("artist", "label", "genre")
BARCODE, TITLE = "barcode", "title"
ENTITY_SPACES = (BARCODE, TITLE, *(f"{kind} on {platform}" for kind in ("release", "artist") for platform in CATALOG_PLATFORMS))
"""Kinds of keys of releases and artists, in the order of table `entity_key`."""

# Seeds of names follow those of KEY_SPACES, so a name and a platform id of the same text get different hashes.
_NAME_SPACE = len(KEY_SPACES)


def normalize_key(space: str, text: str) -> str:
    """Normalise a key as the catalog stores it: UUIDs in lower case, and half a surrogate pair, which no id contains, replaced."""
    text = text.lower() if space == CATALOG_B else text
    return text if text.isascii() else text.encode(errors="replace").decode()


def hash_key(space: int, text: str) -> int:
    """Return the 64-bit hash of a key: XXH3, seeded with `space`, an index in KEY_SPACES."""
    # XXH3 takes .04 us a key; a mixing function in plain Python took .7. The seed keeps equal ids of two platforms apart.
    return xxh3_64_intdigest(text.encode(), space)


def hash_name(kind: int, key: str) -> int:
    """Return the hash of a name key as an integer that SQLite accepts (63 bits); `kind` is an index in NAME_KINDS."""
    # SQLite integers are signed, so one bit is dropped.
    return hash_key(_NAME_SPACE + kind, key) >> 1


def hash_title(artist_id: int, title_key: str) -> int:
    """Return the hash of a release's title key as an integer that SQLite accepts. Releases of one artist and title share it."""
    return hash_key(_NAME_SPACE + len(NAME_KINDS), f"{artist_id} {title_key}") >> 1


def encode_iswc(iswc: str) -> int:
    """Return a bare ISWC as an integer: its ten digits."""
    return int(iswc[1:])


def decode_iswc(code: int) -> str:
    """Return the bare ISWC of a stored code."""
    return f"T{code:010d}"
