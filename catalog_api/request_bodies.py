"""Read request bodies: JSON of a bounded size and the right type, in UTF-8, without duplicate members.

This module refuses what is wrong with any body; the handlers know what the members mean. Out of scope: audio uploads, which are
never held in memory (uploads.py).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from account_store.clock import parse_rfc3339
from catalog_api.parameters import VISIBLE, raise_problems
from catalog_api.problems import ApiError, ParameterProblem
from outbound_http import InvalidAddressError, parse_target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from litestar.types import Receive, Scope

NUL = "\0"
"""PostgreSQL's text cannot hold this character."""
LARGEST_BODY = 2 * 2**20
"""Bytes. 100 rows of artist and title with 500 characters each fit, even if every character is escaped."""
_VISIBLE = re.compile(VISIBLE)
_EXACT = 2**53
"""Floats represent smaller whole numbers exactly."""
_SHOWN = 60
"""Characters of an unknown member's name in a message."""
_CLOSE = {"connection": "close"}
"""Header of a refusal before the body was read: the server does not wait for the rest."""


def read_media_type(scope: Scope) -> str:
    """Return the Content-Type without its options, in lower case."""
    header = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return header.decode("latin-1").partition(";")[0].strip().lower()


def is_visible_text(value: object, longest: int) -> bool:
    """Return whether a value is a text that is not blank."""
    return isinstance(value, str) and len(value) <= longest and NUL not in value and _VISIBLE.search(value) is not None


def explain_text(longest: int) -> str:
    """Return what a text must be."""
    return f"must be a text of 1 to {longest} characters that is not blank and holds no NUL"


async def read_json(scope: Scope, receive: Receive, *, is_needed: bool = True) -> object:
    """Read and decode the body; at most LARGEST_BODY bytes are held. A body that is neither needed nor sent is `{}`.

    ApiError `unsupported_media_type`, `body_too_large`, `invalid_body`.
    """
    headers = dict(scope["headers"])
    # A chunked body announces no length: only this header shows that there is one.
    if not is_needed and b"transfer-encoding" not in headers and headers.get(b"content-length", b"0") == b"0":
        return {}
    found = read_media_type(scope)
    if found != "application/json":
        raise ApiError("unsupported_media_type", f"Content-Type is {found[:60]!a}: send application/json.", headers=_CLOSE)
    options = headers[b"content-type"].decode("latin-1").partition(";")[2]
    charset = options.lower().partition("charset=")[2].partition(";")[0].strip(' "')
    # JSON between systems is UTF-8 (RFC 8259, 8.1).
    if charset not in {"", "utf-8", "utf8"}:
        raise ApiError("unsupported_media_type", f"The charset is {charset[:60]!a}: send the body in utf-8.", headers=_CLOSE)
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise ApiError(
            "unsupported_media_type", "The body has a Content-Encoding: send it uncompressed, without this header.", headers=_CLOSE
        )
    # A body that announces its size is refused before it arrives. `_read_all` counts those that announce none, or less.
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > LARGEST_BODY:
        raise _build_too_large_error()
    return _decode(await _read_all(receive))


async def _read_all(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise ApiError("invalid_body", "The connection ended before the body was complete.")
        parts.append(message["body"])
        size += len(message["body"])
        if size > LARGEST_BODY:
            raise _build_too_large_error()
        if not message["more_body"]:
            return b"".join(parts)


def _build_too_large_error() -> ApiError:
    return ApiError("body_too_large", f"The body is larger than {LARGEST_BODY} bytes.", headers=_CLOSE)


def _decode(body: bytes) -> object:
    try:
        text = body.decode()
        # Not msgspec: it lets the last of two equal members win.
        document: object = json.loads(
            text, object_pairs_hook=_refuse_duplicates, parse_float=_parse_number, parse_constant=_refuse_constant
        )
        # The parser accepts an escaped half of a surrogate pair, which no text can hold.
        if "\\u" in text:
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeError:
        raise ApiError("invalid_body", "The body is not UTF-8.") from None
    except RecursionError:
        raise ApiError("invalid_body", "The body has too many levels of nesting.") from None
    except ValueError as error:
        raise ApiError("invalid_body", f"The body is not JSON: {error}.") from None
    return document


def _refuse_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError(f"member {_find_first_repeated(pairs)[:60]!a} is repeated")
    return members


def _find_first_repeated(pairs: Sequence[tuple[str, object]]) -> str:
    # Comparing 2 MB of names with each other would block the event loop for minutes; a set does not.
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    # `_refuse_duplicates` counted fewer names than pairs.
    raise AssertionError("no member is repeated")


def _parse_number(text: str) -> float:
    """Read `160.0` as a whole number: JSON Schema does, and some encoders write all numbers so."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


class Members:
    """The members of a body. Read them one by one; then `check` raises one error for all problems of the request.

    With `is_strict`, members that were not read by then are problems too: read all that a route knows before `check`.
    """

    def __init__(self, document: object, problems: Sequence[ParameterProblem] = (), *, is_strict: bool = False, place: str = "") -> None:
        """`document` should be an object. `problems` come from other parts of the request; `place` names a part of a larger body."""
        self.document = document
        self.problems = list(problems)
        self.addresses: list[tuple[str, str]] = []
        """Names and values of members with a well-formed address; where it leads is not checked yet."""
        self._is_strict = is_strict
        self._place = place
        self._read: set[str] = set()
        self._parts: list[Members] = []
        self._members = document if isinstance(document, dict) else None
        if self._members is None:
            self.add_problem("", "must be an object")

    def add_part(self, name: str, document: object) -> Members:
        """Return the members of an inner object, `items[3]`; their problems join these."""
        part = Members(document, is_strict=self._is_strict, place=name)
        self._parts.append(part)
        return part

    def add_problem(self, name: str, message: str) -> None:
        """Add a problem."""
        self.problems.append(ParameterProblem("body", ".".join(part for part in (self._place, name) if part) or "body", message))

    def check(self) -> None:
        """Raise ApiError `invalid_parameter` that names every problem, if there is any."""
        raise_problems(self.list_problems())

    def list_problems(self) -> list[ParameterProblem]:
        """Return every problem of the request, those of parts and of unknown members included."""
        unknown = [name for name in self._members or {} if name not in self._read] if self._is_strict else []
        names = [".".join(part for part in (self._place, name[:_SHOWN]) if part) for name in unknown]
        strict = [ParameterProblem("body", name, "is unknown, and the request prefers strict handling") for name in names]
        return [*self.problems, *(problem for part in self._parts for problem in part.list_problems()), *strict]

    def read_choice(self, name: str, choices: Sequence[str]) -> str:
        """Read one of the choices."""
        value = self.read_value(name)
        # A body that is not an object is one problem, not one for each member.
        if self._members is not None and (not isinstance(value, str) or value not in choices):
            self.add_problem(name, f"must be one of {', '.join(choices)}")
        return str(value)

    def read_text(self, name: str, longest: int) -> str:
        """Read a text that is not blank."""
        value = self.read_value(name)
        return self.check_text(name, value, longest) if self._members is not None else ""

    def check_text(self, name: str, value: object, longest: int) -> str:
        """Return a value that is a text and not blank. Otherwise return an empty one and add a problem."""
        if isinstance(value, str) and is_visible_text(value, longest):
            return value
        self.add_problem(name, explain_text(longest))
        return ""

    def read_address(self, name: str, longest: int) -> str:
        """Read an http or https address by its spelling; address_check.py checks later where it leads."""
        value = self.read_text(name, longest)
        if value:
            try:
                parse_target(value)
            except InvalidAddressError as error:
                self.add_problem(name, str(error))
            else:
                self.addresses.append((name, value))
        return value

    def read_optional_text(self, name: str, longest: int, pattern: str = "") -> str | None:
        """Read a text, None when it is absent or null. `pattern`, if given, must match all of it."""
        value = self.read_value(name)
        if value is None:
            return None
        if isinstance(value, str) and len(value) <= longest and (not pattern or re.fullmatch(pattern, value)) and NUL not in value:
            return value
        self.add_problem(name, f"must be a text of at most {longest} characters" + (f" that matches {pattern}" if pattern else ""))
        return None

    def read_time(self, name: str) -> datetime | None:
        """Read an RFC 3339 time; None and a problem when it is none."""
        value = self.read_value(name)
        found = parse_rfc3339(value) if isinstance(value, str) else None
        if found is None and self._members is not None:
            self.add_problem(name, "must be a time such as 2026-11-21T12:00:00Z")
        return found

    def read_choices(self, name: str, choices: Sequence[str]) -> list[str] | None:
        """Read an array of some of the choices, None when it is absent or null."""
        value = self.read_value(name)
        if value is None:
            return None
        if isinstance(value, list) and all(isinstance(one, str) and one in choices for one in value):
            return value
        self.add_problem(name, f"must be an array of some of {', '.join(choices)}")
        return None

    def read_array(self, name: str) -> list[Any]:
        """Read an array of anything."""
        value = self.read_value(name)
        if isinstance(value, list):
            return value
        if self._members is not None:
            self.add_problem(name, "must be an array")
        return []

    def read_integers(self, name: str, low: int, high: int, most: int) -> list[int]:
        """Read 1 to `most` whole numbers from `low` to `high`; the problem names the index of the first wrong one."""
        value = self.read_array(name)
        # `type` instead of isinstance: true is not a number, and the check of the type is cheaper.
        bad = next((place for place, one in enumerate(value) if type(one) is not int or not low <= one <= high), None)
        if bad is not None:
            self.add_problem(f"{name}[{bad}]", f"must be a whole number from {low} to {high}")
        elif isinstance(self.read_value(name), list) and not 1 <= len(value) <= most:
            self.add_problem(name, f"must hold 1 to {most} whole numbers")
        return [] if bad is not None else value

    def read_optional_integer(self, name: str, low: int, high: int) -> int | None:
        """Read a whole number, None when it is absent or null."""
        value = self.read_value(name)
        if value is None or (type(value) is int and low <= value <= high):
            return value
        self.add_problem(name, f"must be a whole number from {low} to {high}")
        return None

    def read_value(self, name: str) -> object:
        """Return what was sent under the name; None when nothing was."""
        # Members that are never read here are unknown to the route.
        self._read.add(name)
        return None if self._members is None else self._members.get(name)
