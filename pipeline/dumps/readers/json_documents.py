"""Answers of web APIs -> the records in them: `[...]`, `{"data": [...], "included": [...]}`, or one object.

In scope: taking envelopes apart. Out of scope: reading files, what a record means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_ANY = msgspec.json.Decoder(msgspec.Raw)
Value = TypeVar("Value")


def split_document(document: bytes | memoryview, members: Sequence[str], texts: Collection[str]) -> list[bytes] | None:
    """Return the records of a document, each as JSON on one line, in order; None when the document is a record itself.

    An array gives its elements. An object that has some of `members` (dotted paths, e.g. `tracks.items`) and none of `texts` (fields of
    records) gives what is there, an object or a list of them, in the order of `members`; any other object is a record.
    msgspec.DecodeError when the document is not JSON, msgspec.ValidationError (one of these) when it is neither object nor array.
    """
    # Only the first bytes are copied: a document may have 256 MB.
    if bytes(document[:64]).lstrip()[:1] == b"[":
        return [to_one_line(element) for element in _decode(_ARRAY, document)]
    fields = _decode(_OBJECT, document)
    # A record may have a member of such a name itself: an album has `tracks`. Envelopes have no id, name or title.
    if not fields.keys().isdisjoint(texts):
        return None
    found = [value for member in _select_deepest(fields, members) for value in _find_values(fields, member.split("."))]
    return [to_one_line(record) for value in found for record in _list_elements(value)] if found else None


def _select_deepest(fields: dict[str, msgspec.Raw], members: Sequence[str]) -> list[str]:
    """Return `members` without those of which a deeper one exists: with `tracks.items`, the envelope in `tracks` is not a record."""
    there = [member for member in members if next(_find_values(fields, member.split(".")), None) is not None]
    return [member for member in there if not any(other.startswith(f"{member}.") for other in there)]


def to_one_line(value: bytes | memoryview | msgspec.Raw) -> bytes:
    """Return the same JSON without line breaks."""
    # Line feeds inside texts are escapes in JSON, so only those between tokens go.
    return msgspec.json.format(bytes(value), indent=-1)


def is_json(text: bytes) -> bool:
    """Return whether `text` is one JSON value."""
    try:
        _decode(_ANY, text)
    except msgspec.DecodeError:
        return False
    return True


def _decode(decoder: msgspec.json.Decoder[Value], text: bytes | memoryview | msgspec.Raw) -> Value:
    """Decode `text`. Raises DecodeError also for endless nesting and for keys that are not UTF-8."""
    try:
        return decoder.decode(text)
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deeply") from error
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error


def _find_values(fields: dict[str, msgspec.Raw], path: list[str]) -> Iterator[msgspec.Raw]:
    value = fields.get(path[0])
    if value is None or bytes(memoryview(value)[:4]) == b"null":
        return
    if len(path) == 1:
        yield value
    elif bytes(memoryview(value)[:1]) == b"{":
        yield from _find_values(_decode(_OBJECT, value), path[1:])


def _list_elements(value: msgspec.Raw) -> list[msgspec.Raw]:
    return _decode(_ARRAY, value) if bytes(memoryview(value)[:1]) == b"[" else [value]
