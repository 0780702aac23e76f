"""Lookup keys in their stored form: ISRC and ISWC as integers, platform ids as integer, UUID bytes or text.

Each packing exists once for a single value (queries) and once as DuckDB SQL over a column (build); both must agree, and tests hold them
to it. Values reach these functions normalised and checked by catalog_store/identifiers.py.
"""

from __future__ import annotations

import re

from catalog_store.identifiers import UUID_SHAPE

_NUMBER = "0|[1-9][0-9]{0,17}"
"""Plain decimal numbers below 10^18: fit a signed 64-bit integer and read back as the same text."""
_UUID = UUID_SHAPE.strip("^$")
_number = re.compile(_NUMBER)
_uuid = re.compile(_UUID)

_DESIGNATIONS = 10**7
_PREFIX_CHARACTERS = 5

_BASE_36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

EXTERNAL_ID_FORMS = (
    (f"regexp_full_match(external_id, '{_NUMBER}')", "external_id::BIGINT"),
    (f"NOT regexp_full_match(external_id, '{_NUMBER}|{_UUID}')", "external_id"),
    (f"regexp_full_match(external_id, '{_UUID}')", "unhex(replace(external_id, '-', ''))"),
)
"""(condition, key) in SQL per stored form, in the order in which SQLite sorts the forms: integers, text, blobs."""


def isrc_code(isrc: str) -> int:
    """A normalised ISRC as integer."""
    return int(isrc[:_PREFIX_CHARACTERS], 36) * _DESIGNATIONS + int(isrc[_PREFIX_CHARACTERS:])


def isrc_code_sql(column: str) -> str:
    """The same over a column of normalised ISRCs."""
    digits = (
        f"(instr('{_BASE_36}', substr({column}, {position}, 1)) - 1) * {36 ** (_PREFIX_CHARACTERS - position)}::BIGINT"
        for position in range(1, _PREFIX_CHARACTERS + 1)
    )
    return f"(({' + '.join(digits)}) * {_DESIGNATIONS} + substr({column}, {_PREFIX_CHARACTERS + 1})::BIGINT)"


def iswc_code(iswc: str) -> int:
    """A bare ISWC as integer: its ten digits."""
    return int(iswc[1:])


def iswc_text(code: int) -> str:
    """The bare ISWC of a stored code."""
    return f"T{code:010d}"


def external_key(external_id: str) -> int | str | bytes:
    """A platform's id in its stored form."""
    if _number.fullmatch(external_id):
        return int(external_id)
    if _uuid.fullmatch(external_id):
        return bytes.fromhex(external_id.replace("-", ""))
    # Half a surrogate pair is no text that SQLite takes, and no id either.
    return external_id.encode(errors="replace").decode()
