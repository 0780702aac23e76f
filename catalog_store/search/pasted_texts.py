"""Queries that were copied with the encoding of their source.

An address has `Let%20It%20Be`, a page `Beyonc&eacute;`, a broken tag `BeyoncÃ©`: UTF-8 read as Windows-1252.

A name may look so by itself. A query is therefore decoded only if nothing was found for it as typed. Titles of documents need none of
this: adapters decode them (pipeline/dumps/fields/texts.py), and title keys read entities.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote

from catalog_store.name_keys.title_repair import decode_entities

if TYPE_CHECKING:
    from collections.abc import Callable

_ESCAPED = re.compile("%[0-9A-Fa-f]{2}")
_BYTES = str.maketrans({bytes([byte]).decode("cp1252", "ignore") or chr(byte): chr(byte) for byte in range(0x80, 0xA0)})
"""Letters of Windows-1252 as those of Latin-1, which has one for each byte."""


def decode_pasted(text: str) -> str:
    """Return what was encoded; the text itself if nothing was, or nothing would remain."""
    decoded = text
    if _ESCAPED.search(decoded):
        # `100%ab` is no address.
        with suppress(UnicodeDecodeError):
            decoded = unquote(decoded, errors="strict")
    decoded = decode_entities(decoded)
    if not decoded.isascii():
        decoded = _decode_again(decoded)
    return decoded if decoded.strip() else text


def look_up_pasted(text: str, find: Callable[[str], list[int]]) -> list[int]:
    """Return what `find` returns for the text as written; if that is nothing, what it returns for the decoded text."""
    found = find(text)
    decoded = text if found else decode_pasted(text)
    return found if decoded == text else find(decoded)


def _decode_again(text: str) -> str:
    """Return the text whose UTF-8 bytes were read as letters of Windows-1252 or Latin-1. Other texts are hardly ever valid UTF-8."""
    try:
        return text.translate(_BYTES).encode("latin-1").decode()
    except UnicodeError:
        return text
