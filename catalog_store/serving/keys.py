"""Lookup keys as 64-bit hashes: ISRCs and the ids of every platform; name keys; ISWCs as integers.

A hash only says where to look: whoever finds something compares the text itself. Values reach these functions normalised and checked by
catalog_store/identifiers.py.
"""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from catalog_store.platforms import CATALOG_B, LINK_SOURCES

ISRC = "isrc"
KEY_SPACES = (ISRC, *LINK_SOURCES)
NAME_KINDS = ("artist", "label", "genre")

_NAME_SPACE = len(KEY_SPACES)


def spelled(space: str, text: str) -> str:
    """A key as the catalog stores it: UUIDs in lower case; half a surrogate pair, which is in no id, replaced."""
    text = text.lower() if space == CATALOG_B else text
    return text if text.isascii() else text.encode(errors="replace").decode()


def key_hash(space: int, text: str) -> int:
    """64-bit hash of a key: XXH3 with `space`, an index in KEY_SPACES, for a seed."""
    return xxh3_64_intdigest(text.encode(), space)


def name_hash(kind: int, key: str) -> int:
    """Hash of a name key that SQLite takes as an integer; `kind` is an index in NAME_KINDS."""
    return key_hash(_NAME_SPACE + kind, key) >> 1


def iswc_code(iswc: str) -> int:
    """A bare ISWC as integer: its ten digits."""
    return int(iswc[1:])


def iswc_text(code: int) -> str:
    """The bare ISWC of a stored code."""
    return f"T{code:010d}"
