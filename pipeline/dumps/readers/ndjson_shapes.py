"""Types of the fields of a JSON record, and the repair of records that break them: fields of another type are removed by name.

In scope: telling one record at a time, off the fast path, whether its fields are of the types asked for; what JSON writers get wrong
in text. Out of scope: blocks, files, what a field means.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import duckdb
import msgspec
import numpy as np
import polars as pl

from pipeline.dumps.staging.staging_writer import VALUE_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_NESTED_START = r'^(\{["}]|\[(["{\[\]]|-?[0-9.]+[\],]|true|false|null))'
"""Beginning of a list or an object that was read as text. A title that begins so only gets a second look."""
_NOTHING: tuple[object, ...] = (None, "", [], {})
"""Empty values. Some writers put one of them for another."""
_VIEW_BYTES, _PREFIX = 16, 4
"""Arrow's string views: the length in four bytes, then the first bytes of the text."""
_WHOLE_NUMBERS = {"bigint": 64, "integer": 32}
"""Bits of the numeric types that layouts ask for."""


@dataclass(frozen=True)
class Misfit:
    """A field that holds a value of another type, by its path in the record (`artists[1].name`)."""

    field: str
    value: str


@dataclass(frozen=True)
class RepairedRecord:
    """A record as JSON on one line without the fields that did not fit."""

    text: bytes
    record_id: str | None
    misfits: list[Misfit]


class Shape:
    """The types of the columns of a layout (name -> DuckDB type)."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        """Take the types VARCHAR, JSON (any value), INTEGER, BIGINT, and lists and structs of these."""
        self._fields = {name: duckdb.sqltype(dtype) for name, dtype in columns.items()}
        self._decoder = msgspec.json.Decoder(_build_struct_type(self._fields))

    def can_hold(self, text: bytes) -> bool:
        """Return whether a line is an object with fields of the right types. Some lines that are not strictly JSON pass, too."""
        try:
            self._decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        return True

    def repair(self, text: str) -> RepairedRecord | None:
        """Return the record without fields that do not fit; None when the line is not a JSON object or names a field twice.

        A single value where a list is expected becomes a list of one, and a list of one becomes its value where one is expected. Raw
        control characters, which JSON forbids in texts, are kept; lone surrogates become U+FFFD.
        """
        try:
            # The standard library shows names that occur twice, and `strict=False` takes raw control characters.
            record = json.loads(text, strict=False, parse_constant=str, object_pairs_hook=_build_object)
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, dict):
            return None
        misfits: list[Misfit] = []
        try:
            record = record | {name: _fit(record[name], kind, name, misfits) for name, kind in self._fields.items() if name in record}
            line = _replace_surrogates(json.dumps(record, ensure_ascii=False)).encode()
        except (ValueError, RecursionError):  # a number of thousands of digits, or nesting that can be read but not written
            return None
        identifier = record.get("id")
        return RepairedRecord(line, _replace_surrogates(str(identifier)) if isinstance(identifier, str | int) else None, misfits)

    def has_nested_texts(self, frame: pl.DataFrame) -> bool:
        """Return whether some text of the columns may be a list or an object that was read as text."""
        return any(_has_nested(frame[name], kind) for name, kind in self._fields.items())


def _replace_surrogates(text: str) -> str:
    """Return the text with U+FFFD for lone surrogates, which no encoding can write."""
    return _LONE_SURROGATES.sub("\ufffd", text)


def _build_struct_type(fields: Mapping[str, Any]) -> type[msgspec.Struct]:
    names = {f"field_{index}": name for index, name in enumerate(fields)}
    typed = [(alias, _build_decoder_type(fields[name]) | None, None) for alias, name in names.items()]
    return msgspec.defstruct("Fields", typed, rename=names)


def _build_decoder_type(kind: Any) -> Any:  # noqa: ANN401 - types of two libraries, which have no name
    if str(kind) == "JSON":
        return msgspec.Raw
    if kind.id == "list":
        return list[_build_decoder_type(kind.children[0][1]) | None]  # type: ignore[misc]
    if kind.id == "struct":
        return _build_struct_type(dict(kind.children))
    # DuckDB casts any scalar to text, so texts take numbers and flags.
    return int if kind.id in _WHOLE_NUMBERS else str | int | float | bool


def _build_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # A dict keeps the last of two equal names, but nobody can say which one was meant.
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field occurs twice")
    return found


def _fit(value: object, kind: Any, path: str, misfits: list[Misfit]) -> object:  # noqa: ANN401
    """Return the value without parts of another type, which go to `misfits`."""
    if value is None or str(kind) == "JSON":
        return value
    if kind.id == "list":
        return _fit_list(value if isinstance(value, list) else [value], kind.children[0][1], path, misfits)
    # Some writers put a list of one where others put the value.
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if kind.id == "struct" and isinstance(value, dict):
        fields = dict(kind.children)
        return {name: _fit(part, fields[name], f"{path}.{name}", misfits) if name in fields else part for name, part in value.items()}
    if kind.id in _WHOLE_NUMBERS and _is_number(value, _WHOLE_NUMBERS[kind.id]):
        return round(float(value)) if isinstance(value, str) else value
    if kind.id == "varchar" and not isinstance(value, dict | list):
        return value
    if value not in _NOTHING:
        misfits.append(Misfit(path, _replace_surrogates(json.dumps(value, ensure_ascii=False, default=str))[:VALUE_CHARACTERS]))
    return None


def _fit_list(values: list[object], kind: Any, path: str, misfits: list[Misfit]) -> list[object] | None:  # noqa: ANN401
    """Return the list without entries that do not fit. A list of numbers is one value, good or bad as a whole."""
    before = len(misfits)
    entries = [(entry, _fit(entry, kind, f"{path}[{index}]", misfits)) for index, entry in enumerate(values)]
    # A fingerprint without one of its items is another fingerprint.
    if kind.id in _WHOLE_NUMBERS and len(misfits) > before:
        return None
    return [fitted for entry, fitted in entries if entry is None or fitted is not None]


def _is_number(value: object, bits: int) -> bool:
    """Return whether the value is a number of at most `bits` bits. DuckDB rounds fractions."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):  # the last: a whole number of 400 digits
        return False
    return -(2.0 ** (bits - 1)) <= number < 2.0 ** (bits - 1)


def _has_nested(values: pl.Series, kind: Any) -> bool:  # noqa: ANN401
    if str(kind) == "JSON" or kind.id in _WHOLE_NUMBERS or values.null_count() == len(values):
        return False
    if kind.id == "list":
        return _has_nested(values.explode(), kind.children[0][1])
    if kind.id == "struct":
        return any(_has_nested(values.struct.field(name), part) for name, part in kind.children)
    bracketed = pl.Series([text for chunk in values.get_chunks() for text in _find_bracketed(chunk)], dtype=pl.String)
    return bool(bracketed.str.contains(_NESTED_START).any())


def _find_bracketed(texts: pl.Series) -> list[str]:
    """Return the texts of one chunk that begin with a bracket, by the prefixes in its views: a fifth of the cost of reading them."""
    array = texts.to_arrow(compat_level=pl.CompatLevel.newest())
    views = np.frombuffer(cast("memoryview", array.buffers()[1]), dtype=np.uint8).reshape(-1, _VIEW_BYTES)[
        array.offset : array.offset + len(array)
    ]
    # `[` is 0x5B and `{` is 0x7B: setting the bit in which they differ tests for both at once.
    found = np.flatnonzero((views[:, _PREFIX] | (ord("[") ^ ord("{"))) == ord("{"))
    return texts.gather(found).drop_nulls().to_list() if len(found) else []
