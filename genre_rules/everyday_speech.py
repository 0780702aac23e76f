"""The everyday words, names, titles and places that free tags hold besides genres. The words are data of words.yaml.

Parts of a string belong in classify.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genre_rules.compile import CompiledBook


def is_everyday(book: CompiledBook, form: str) -> bool:
    """Return whether the whole form is an everyday word or phrase, wherever its spaces are (`talk box`, `talkbox`)."""
    return form in book.everyday or (form not in book.own_names and form.replace(" ", "") in book.everyday_squeezed)


def is_like_a_name(book: CompiledBook, words: list[str]) -> bool:
    """Return whether it begins as no genre does (`the classical`), repeats a word (`trap trap trap`), or names only a place."""
    has_opener = words[0] in book.openers and not any(word in book.tails and word not in book.bearers for word in words)
    is_repeated = len(words) > 2 and len(set(words)) == 1  # noqa: PLR2004 - `electronic electronic` is a typing error
    is_place = len(words) > 1 and words[-1] not in book.phrases and book.geography.issuperset(words)
    return has_opener or is_repeated or is_place
