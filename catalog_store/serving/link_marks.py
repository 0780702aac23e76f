"""The mark of a stored link's platform. It does not depend on other platforms, so stored bodies stay when one is added."""

from __future__ import annotations

from catalog_store.serving.lookup_keys import KNOWN_SOURCES

_NAMED = "9"
"""The digit before a mark that names its platform; KNOWN_SOURCES has fewer."""


def encode_mark(source: str) -> str:
    """Return the text that begins a stored link: one digit for a source that the format numbers, else `9<key>:`."""
    return str(KNOWN_SOURCES.index(source)) if source in KNOWN_SOURCES else f"{_NAMED}{source}:"


def split_link(text: str) -> tuple[str, str]:
    """Return the source and the external id of a stored link."""
    if text[0] != _NAMED:
        return KNOWN_SOURCES[int(text[0])], text[1:]
    source, _, external_id = text[1:].partition(":")
    return source, external_id
