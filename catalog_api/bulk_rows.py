"""Rows of bulk resolve: their forms, their reading from a body, their results (contract D).

Out of scope: what a row leads to (row_resolvers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from account_store.ledger import Charge
from catalog_api.parameters import LARGEST_ID, TEXT_CHARACTERS, VISIBLE
from catalog_api.problems import ApiError
from catalog_api.request_bodies import Members, explain_text, is_visible_text
from catalog_store.reader import Catalog

MOST_ITEMS = 100
"""Specification, part 8."""
SKIPPED_MESSAGE = "The credits of the month ran out: rows with status skipped_no_credits were not tried."

_TEXT = {"type": "string", "minLength": 1, "maxLength": TEXT_CHARACTERS, "pattern": rf"^[^\x00]*{VISIBLE}[^\x00]*$"}


class RowForm(Enum):
    """The form of a row."""

    CODE = "any text: a malformed code is not found"
    ID = "a whole number"
    NAME = "a text that is not blank"
    ARTIST_AND_TITLE = "an object with artist and title"

    @property
    def is_searched(self) -> bool:
        """Whether a row takes milliseconds."""
        return self in {RowForm.NAME, RowForm.ARTIST_AND_TITLE}


_SCHEMAS: Mapping[RowForm, dict[str, Any]] = {
    RowForm.CODE: {"type": "string"},
    RowForm.ID: {"type": "integer", "minimum": 1, "maximum": LARGEST_ID},
    RowForm.NAME: _TEXT,
    RowForm.ARTIST_AND_TITLE: {"type": "object", "required": ["artist", "title"], "properties": {"artist": _TEXT, "title": _TEXT}},
}


_TYPES = {RowForm.CODE: str, RowForm.ID: int, RowForm.NAME: str, RowForm.ARTIST_AND_TITLE: dict}


class RowResolver(NamedTuple):
    """The input types of one kind of entity by name, and the function that resolves rows of a type, an encoded result for each.

    It takes the catalog, the URL templates by platform, the input type and the rows.
    """

    forms: Mapping[str, RowForm]
    resolve: Callable[[Catalog, Mapping[str, str], str, Sequence[Any]], list[bytes]]
    skipped: bytes = b""
    """Members of the result of a row that was not tried."""


def build_body_schema(forms: Mapping[str, RowForm]) -> dict[str, Any]:
    """Return the JSON Schema of a request body."""
    return {
        "oneOf": [
            {
                "type": "object",
                "required": ["input_type", "items"],
                "properties": {
                    "input_type": {"type": "string", "enum": [kind for kind, one in forms.items() if one is form]},
                    "items": {"type": "array", "minItems": 1, "maxItems": MOST_ITEMS, "items": _SCHEMAS[form]},
                },
            }
            for form in dict.fromkeys(forms.values())
        ]
    }


def read_rows(members: Members, forms: Mapping[str, RowForm]) -> tuple[str, list[Any]]:
    """Return the input type and the rows of a body. ApiError `invalid_parameter`, `too_many_items`."""
    # A malformed row is the caller's error, a malformed code is not: it is that row's not_found (contract D1).
    input_type = members.read_choice("input_type", tuple(forms))
    items = members.read_array("items")
    if len(items) > MOST_ITEMS:
        # Too many items alone has a code of its own; beside other problems it is one of them.
        if not members.list_problems():
            raise ApiError("too_many_items", f"The request has {len(items)} items: at most {MOST_ITEMS} are allowed.")
        members.add_problem("items", f"must hold at most {MOST_ITEMS} items, got {len(items)}")
    if members.read_value("items") == []:
        members.add_problem("items", "must hold at least one item")
    for number, item in enumerate(items[:MOST_ITEMS]):
        name = f"items[{number}]"
        if input_type in forms:
            _check_row(members, name, item, forms[input_type])
        elif not any(isinstance(item, _TYPES[form]) for form in forms.values()):
            members.add_problem(name, "fits no input_type")
    members.check()
    return input_type, items


def _check_row(members: Members, name: str, item: object, form: RowForm) -> None:
    if form is RowForm.ARTIST_AND_TITLE:
        row = members.add_part(name, item)
        row.read_text("artist", TEXT_CHARACTERS)
        row.read_text("title", TEXT_CHARACTERS)
    elif problem := find_row_problem(form, item):
        members.add_problem(name, problem)


def find_row_problem(form: RowForm, item: object) -> str | None:
    """Return what is wrong with a row; None when nothing is."""
    if form is RowForm.CODE:
        return None if isinstance(item, str) else "must be a string"
    if form is RowForm.ID:
        # `type` instead of isinstance: true is not a number.
        is_id = type(item) is int and 1 <= item <= LARGEST_ID
        return None if is_id else f"must be a whole number from 1 to {LARGEST_ID}"
    if form is RowForm.NAME:
        return None if is_visible_text(item, TEXT_CHARACTERS) else explain_text(TEXT_CHARACTERS)
    if not isinstance(item, dict):
        return "must be an object with artist and title"
    wrong = [name for name in ("artist", "title") if not is_visible_text(item.get(name), TEXT_CHARACTERS)]
    return f"{wrong[0]} {explain_text(TEXT_CHARACTERS)}" if wrong else None


def encode_row(item: object, status: bytes, members: bytes = b"") -> bytes:
    """Return the result of a row; `members` follow the status and begin with a comma."""
    return b'{"input":%s,"status":"%s"%s}' % (msgspec.json.encode(item), status, members)


def is_matched(row: bytes) -> bool:
    """Return whether the result of a row that was tried is a match."""
    # The status of a row without a match is at its end, where no input can be.
    return not row.endswith((b'"status":"not_found"}', b'"status":"not_found","links":[]}'))


def encode_results(rows: Sequence[bytes], charge: Charge, *, is_partial: bool) -> bytes:
    """Return the answer to a batch."""
    message = msgspec.json.encode(SKIPPED_MESSAGE if is_partial else None)
    return b'{"results":[%s],"partial":%s,"processed":%d,"credits_used":%d,"credits_remaining":%d,"message":%s}' % (
        b",".join(rows),
        b"true" if is_partial else b"false",
        charge.granted,
        charge.granted,
        charge.remaining,
        message,
    )
