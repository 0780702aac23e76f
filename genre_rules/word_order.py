"""The order of words in other languages: a people or an adjective behind the genre (`pop turco`, `house deep`), read as English puts it.

A form is changed only if the rules know what it becomes. The words themselves are data of demonyms.yaml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

LONGEST_GENRE = 3
"""The most words of a genre that a people stands beside: `hip hop turco`, `drum and bass brasileiro`."""


def put_people_first(words: Sequence[str], peoples: Mapping[str, str], known: Collection[str]) -> list[str]:
    """Return the words with the first people that has a genre of its own before it, in English; the same words if there is none."""
    for index, word in enumerate(words):
        people = peoples.get(word)
        if people is None:
            continue
        # The longest genre beside it decides, the one before it first: `rock turco`, then `turco rock`.
        for length in range(LONGEST_GENRE, 0, -1):
            for start, end in ((index - length, index), (index + 1, index + 1 + length)):
                if start < 0 or end > len(words):
                    continue
                genre = " ".join(words[start:end])
                first, last = min(start, index), max(end, index + 1)
                is_changed = f"{people} {genre}" != " ".join(words[first:last])
                if is_changed and f"{people} {genre}" in known and " ".join(words[first:last]) not in known:
                    return [*words[:first], *people.split(), *words[start:end], *words[last:]]
    return list(words)


def put_adjective_first(words: Sequence[str], names: Collection[str], heads: Collection[str]) -> list[str]:
    """Return the words with the last one first if that is a genre's own name: `house deep`, `metal gothic`.

    A last word of `heads` stays: `jazz soul` is no Soul Jazz.
    """
    turned = [words[-1], *words[:-1]]
    return turned if len(words) > 1 and words[-1] not in heads and " ".join(turned) in names else list(words)
