"""Frames: forms of words around a genre that add a language, a place or a people and say nothing else (`rock music of chile`).

A frame is data (words.yaml). It fits the whole normal form, and what it holds as `genre` must be a genre's whole name. `means` says
which names are asked, the first known one decides: `rap in spanish` is asked as `latin rap`, then as `rap`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genre_rules.documents import RuleError, read_mapping, read_strings, read_word

if TYPE_CHECKING:
    from collections.abc import Iterator

GENRE = "{genre}"
CURATED = "curated"
"""The value of `sources` for all platforms whose strings are all genres."""


@dataclass(frozen=True)
class Frame:
    """One frame: its pattern with a group `genre`, the names that it asks for, and the words beside which it does not fit.

    `is_curated`: only where every string is a genre.
    """

    pattern: re.Pattern[str]
    means: tuple[str, ...]
    unless: frozenset[str] = frozenset()
    is_curated: bool = False

    def find_names(self, form: str, places: frozenset[str] = frozenset()) -> list[str]:
        """Return the names to ask for, best first; none when the frame does not fit. Its group `place` fits words of `places` only."""
        match = self.pattern.fullmatch(form)
        if match is None or not self.unless.isdisjoint(form.split()):
            return []
        if "place" in self.pattern.groupindex and not places.issuperset(match["place"].split()):
            return []
        return [name.replace(GENRE, match["genre"]) for name in self.means]


def read_frames(written: Any, place: str) -> tuple[Frame, ...]:  # noqa: ANN401 - a YAML document has any shape until it is checked
    """Read the list `frames`; RuleError names the entry that cannot be used."""
    if not isinstance(written, list):
        raise RuleError(f"{place}: frames is no list; write one, each entry with `pattern:` and `means:`")
    return tuple(_read_frame(entry, f"{place}: frames: entry {number}") for number, entry in enumerate(written, start=1))


def _read_frame(written: Any, place: str) -> Frame:  # noqa: ANN401
    fields = read_mapping(written, place, "the frame", ("pattern", "means", "sources", "unless", "why", "examples"))
    pattern = read_word(fields.get("pattern"), place, "pattern")
    frame_means = read_strings(fields.get("means"), place, "means")
    trouble = next(_find_troubles(pattern, frame_means), None)
    if trouble:
        raise RuleError(f"{place}: {trouble}")
    sources = read_strings(fields.get("sources"), place, "sources")
    if sources not in ((), (CURATED,)):
        raise RuleError(f"{place}: sources is {', '.join(sources)}; a frame applies everywhere, or on `{CURATED}` platforms")
    return Frame(re.compile(pattern), frame_means, frozenset(read_strings(fields.get("unless"), place, "unless")), bool(sources))


def _find_troubles(pattern: str, means: tuple[str, ...]) -> Iterator[str]:
    try:
        if "genre" not in re.compile(pattern).groupindex:
            yield f"{pattern!r} has no group `(?P<genre>...)`; mark the part that is the genre"
    except re.error as error:
        yield f"{pattern!r} is not a regular expression: {error}; correct it"
    if not means or any(GENRE not in name for name in means):
        yield f"means must name `{GENRE}`, once or more: `means: [{GENRE}]`"
