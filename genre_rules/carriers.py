"""Carriers of a genre: shops name records (`Used Jazz LPs`), stations, podcasts and playlists say what they play (`Jazz for Sleep`).

The words are data of words.yaml (carriers). The rest is classified like any string, so a carrier beside anything else says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genre_rules.documents import read_mapping, read_strings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FIELDS = ("before", "behind", "loosely_before", "loosely_behind", "purposes", "moments", "occasions", "people")


LONGEST = 4
"""The most words of a carrier."""
MOST_NUMBERED = 2
"""A number behind this many words and more is an edition of the last: `techno podcast 23`."""


@dataclass(frozen=True)
class Carriers:
    """Words before and behind the name of a genre that change nothing; `loosely` only where the genre is no everyday word (`beach house`).

    `purposes`: words that begin what the music is for (`sea shanties for the boat`); `occasions`: what it is for, also behind one word only
    (`jazz for sleep`); `moments`: words that begin when and where, an occasion behind a longer name (`deep house at night`); `people`:
    words behind a purpose that make a title of it (`dance for me`).
    """

    before: frozenset[str] = frozenset()
    behind: frozenset[str] = frozenset()
    loosely_before: frozenset[str] = frozenset()
    loosely_behind: frozenset[str] = frozenset()
    purposes: frozenset[str] = frozenset()
    moments: frozenset[str] = frozenset()
    occasions: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()

    def normalise(self, normalise: Callable[[str], str]) -> Carriers:
        """Return the same words in normal form."""
        return Carriers(*(frozenset(map(normalise, getattr(self, name))) for name in FIELDS))

    def strip(self, words: Sequence[str], homely: frozenset[str]) -> Iterator[str]:
        """Generate what is left without the words behind the name (`rare groove 45s`), then without those before it too."""
        found = self._cut_purpose(words)
        for before in (frozenset[str](), self.before | self.loosely_before):
            core = _strip_ends(found, before, self.behind | self.loosely_behind)
            if len(core) == 1 and core[0] in homely:
                core = _strip_ends(found, before & self.before, self.behind)
            if len(core) < len(words):
                yield " ".join(core)

    def _cut_purpose(self, words: Sequence[str]) -> Sequence[str]:
        for index in range(1, len(words) - 1):
            is_purpose = words[index] in self.purposes
            if (is_purpose or words[index] in self.moments) and self.people.isdisjoint(words[index + 1 :]):
                # A single word before either is mostly a title: `prelude pour piano`, `tango in the night`.
                is_sure = is_purpose and index > 1
                is_occasion = (is_purpose or index > 1) and not self.occasions.isdisjoint(words[index + 1 :])
                return words[:index] if is_sure or is_occasion else words
        return words


def _strip_ends(words: Sequence[str], before: frozenset[str], behind: frozenset[str]) -> list[str]:
    core = list(words)
    count = 0
    while count != len(core) > 1:
        count = len(core)
        core = core[_count(core, before, at_end=False) :]
        carried = _count(core, behind, at_end=True)
        number = int(not carried and len(core) > MOST_NUMBERED and core[-1].isdecimal())
        carried = carried or _count(core[: len(core) - number], behind, at_end=True)
        core = core[: len(core) - number - carried] if carried else core
    return core


def _count(words: Sequence[str], carriers: frozenset[str], *, at_end: bool) -> int:
    # The longest carrier first; at least one word is left.
    for length in range(min(LONGEST, len(words) - 1), 0, -1):
        if " ".join(words[-length:] if at_end else words[:length]) in carriers:
            return length
    return 0


def read_carriers(written: Any, place: str) -> Carriers:  # noqa: ANN401 - a YAML document has any shape until it is checked
    """Read the mapping `carriers`; RuleError names what cannot be used."""
    fields = read_mapping(written, place, "carriers", FIELDS)
    return Carriers(*(frozenset(read_strings(fields.get(name), place, f"carriers.{name}")) for name in FIELDS))
