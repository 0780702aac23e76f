"""Compounds: genres and what describes them in one word (`finnishmetal`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genre_rules.compile import CompiledBook

SHORTEST_PIECE, SHORTEST_HEAD, LONGEST_WORD = 3, 3, 40
"""Letters of the words of a compound (a head of three letters follows a place only), and of the longest word that is split."""


def split_compound(book: CompiledBook, word: str) -> list[str]:
    """Return the known words of a compound, its head last: `finnishmetal`; none when the word is not such a compound."""
    if word in book.real_words:
        return []
    for cut in range(SHORTEST_PIECE, len(word) - SHORTEST_HEAD + 1) if len(word) <= LONGEST_WORD else ():
        head = book.spaced.get(word[cut:])
        if len(word) - cut == SHORTEST_HEAD and word[:cut] not in book.geography:
            continue
        before = _split_prefix(book, word[:cut]) if head else []
        if head and before:
            return [*before, *head.split()]
    return []


def _split_prefix(book: CompiledBook, word: str) -> list[str]:
    if word in book.modifiers:
        return [word]
    return book.spaced[word].split() if word in book.spaced else split_compound(book, word)
