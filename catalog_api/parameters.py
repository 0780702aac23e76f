"""Reads path and query parameters and gathers everything that is wrong with them, so that one answer names all (contract A5).

Values arrive as text; limits come from the specification, part 8.
"""

from __future__ import annotations

import re

from catalog_api.problems import ApiError, ParameterProblem
from catalog_store.identifiers import NUMBER_SHAPE, STREAMSVC_A_SHAPE, UUID_SHAPE, normalise_isrc, normalise_iswc
from catalog_store.platforms import CATALOG_B, CATALOG_PLATFORMS, STREAMSVC_A

SEARCH_TEXT_CHARACTERS = 500
SEARCH_LIMIT = (1, 100, 20)
"""Smallest, largest, default page of a search (specification, part 8)."""
ISWC_LIMIT = (1, 200, 50)
LARGEST_ID = 2**63 - 1

_SHAPES = dict.fromkeys(CATALOG_PLATFORMS, NUMBER_SHAPE) | {STREAMSVC_A: STREAMSVC_A_SHAPE, CATALOG_B: UUID_SHAPE}


class Parameters:
    """Collects problems while values are read; `check()` raises one error for all of them."""

    def __init__(self) -> None:
        """No problem so far."""
        self._problems: list[ParameterProblem] = []

    def complain(self, name: str, message: str, place: str = "query") -> None:
        """Note a problem with a parameter."""
        self._problems.append(ParameterProblem(place, name, message))

    def check(self) -> None:
        """ApiError `invalid_parameter` when anything was wrong."""
        if self._problems:
            names = ", ".join(problem.name for problem in self._problems)
            raise ApiError("invalid_parameter", f"Invalid or missing: {names}.", tuple(self._problems))

    def text(self, name: str, value: str | None) -> str:
        """A required text that is not blank."""
        if value is None or not value.strip():
            self.complain(name, "required and must not be blank")
            return ""
        if len(value) > SEARCH_TEXT_CHARACTERS:
            self.complain(name, f"at most {SEARCH_TEXT_CHARACTERS} characters, got {len(value)}")
        return value

    def limit(self, value: str | None, bounds: tuple[int, int, int]) -> int:
        """A page size within bounds; out of range is an error, never clamped (contract A7)."""
        smallest, largest, default = bounds
        if value is None:
            return default
        if not re.fullmatch(r"[0-9]{1,9}", value) or not smallest <= int(value) <= largest:
            self.complain("limit", f"a whole number from {smallest} to {largest}, got {value[:40]!r}")
            return default
        return int(value)

    def track_id(self, value: str, name: str = "id", place: str = "query") -> int:
        """A track id: a positive whole number."""
        if not re.fullmatch(r"[0-9]{1,19}", value) or not 1 <= int(value) <= LARGEST_ID:
            self.complain(name, f"a positive whole number, got {value[:40]!r}", place)
            return 0
        return int(value)

    def isrc(self, value: str, place: str = "query") -> str:
        """An ISRC, hyphens and spaces allowed."""
        code = normalise_isrc(value)
        if code is None:
            self.complain("isrc", f"twelve characters: two letters, three letters or digits, seven digits; got {value[:40]!r}", place)
        return code or ""

    def iswc(self, value: str, place: str = "path") -> str:
        """An ISWC, separators allowed; its check digit is not judged here: a wrong one is simply unknown (contract B9)."""
        code = normalise_iswc(value)
        if code is None:
            self.complain("iswc", f"the letter T and ten digits, got {value[:40]!r}", place)
        return code or ""

    def external_id(self, platform: str, value: str) -> str:
        """An id of the platform's own shape."""
        candidate = value.strip().lower() if platform == CATALOG_B else value.strip()
        if not re.fullmatch(_SHAPES[platform], candidate):
            self.complain(f"{platform}_id", f"not an id of {platform}: {value[:60]!r}")
        return candidate

    def exactly_one(self, given: dict[str, str | None]) -> tuple[str, str] | None:
        """The one parameter that was sent, with its value; a problem when none or several were."""
        sent = [(name, value) for name, value in given.items() if value is not None]
        if len(sent) == 1:
            return sent[0]
        for name in [name for name, _ in sent] or list(given):
            self.complain(name, f"exactly one of {', '.join(given)} must be sent, got {len(sent)}")
        return None
