"""What carries a genre: shops name records (`Used Jazz LPs`), stations, podcasts and playlists say what they play (`Jazz for Sleep`).

The words are data of words.yaml (carriers). The rest is classified like any string, so a carrier beside anything else says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genre_rules.documents import read_mapping, read_strings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FIELDS = ("before", "behind", "purposes", "occasions", "people")


@dataclass(frozen=True)
class Carriers:
    """Words before and behind the name of a genre that change nothing.

    `purposes`: words that begin what the music is for (`jazz for sleep`); `occasions`: what it is for, also where the genre is an everyday
    word (`soul for dinner`); `people`: words behind a purpose that make a title of it (`dance for me`).
    """

    before: frozenset[str] = frozenset()
    behind: frozenset[str] = frozenset()
    purposes: frozenset[str] = frozenset()
    occasions: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()

    def normalise(self, normalise: Callable[[str], str]) -> Carriers:
        """Return the same words in normal form."""
        return Carriers(*(frozenset(map(normalise, getattr(self, name))) for name in FIELDS))

    def strip(self, words: Sequence[str], homely: frozenset[str]) -> list[str]:
        """Return the words without those around the name; the same words if there are none, or nothing else."""
        core = self._cut_purpose(words, homely)
        is_shorter = True
        while is_shorter and len(core) > 1:
            count = len(core)
            core = core[self._count(core, self.before, at_end=False) :]
            core = core[: len(core) - self._count(core, self.behind, at_end=True)]
            is_shorter = len(core) < count
        return list(core)

    def _cut_purpose(self, words: Sequence[str], homely: frozenset[str]) -> Sequence[str]:
        for index in range(1, len(words) - 1):
            if words[index] in self.purposes and self.people.isdisjoint(words[index + 1 :]):
                is_homely = index == 1 and words[0] in homely
                return words if is_homely and self.occasions.isdisjoint(words[index + 1 :]) else words[:index]
        return words

    @staticmethod
    def _count(words: Sequence[str], carriers: frozenset[str], *, at_end: bool) -> int:
        # The longest carrier first; at least one word is left.
        for length in range(min(3, len(words) - 1), 0, -1):
            if " ".join(words[-length:] if at_end else words[:length]) in carriers:
                return length
        return 0


def read_carriers(written: Any, place: str) -> Carriers:  # noqa: ANN401 - a YAML document has any shape until it is checked
    """Read the mapping `carriers`; RuleError names what cannot be used."""
    fields = read_mapping(written, place, "carriers", FIELDS)
    return Carriers(*(frozenset(read_strings(fields.get(name), place, f"carriers.{name}")) for name in FIELDS))
