"""Readings of Japanese titles and persons with Chinese characters, by Janome's dictionary (IPADIC): `打上花火` is `ウチアゲハナビ`.

The build of the search index alone uses them: the dictionary takes 90 MB, and 900 MB without bytecode, so no query may. A title is read
as it is shown, because keys write Chinese characters in one form that the dictionary does not know. Out of scope: sounds
(romanisation.py).
"""

from __future__ import annotations

import re
from functools import lru_cache

from janome.tokenizer import Token, Tokenizer

HAN = "[\u3005\u3400-\u9fff]"
_HAN_RE = re.compile(HAN)
# A note behind a bracket or a wave, also of full width, or behind a dash.
_NOTE = re.compile(r" ?[(\[\uff08\uff3b\u3010\u3014\u301c\uff5e].*| - .*")
_UNKNOWN = "*"
_PERSON = "名詞,固有名詞,人名"
"""Part of speech of the names of persons, in the dictionary's words."""


def read_japanese(title: str) -> str:
    """Return the title without notes, Chinese characters in katakana; empty when it has none, or one that the dictionary cannot read."""
    shown = _NOTE.sub("", title)
    if not _HAN_RE.search(shown):
        return ""
    tokens = [token for token in _open_dictionary().tokenize(shown) if isinstance(token, Token)]
    # A token without a reading is a word of Latin letters or kana, which read themselves.
    words = [token.surface if token.reading == _UNKNOWN else token.reading for token in tokens]
    return "" if any(map(_HAN_RE.search, words)) else "".join(words)


def read_japanese_person(name: str) -> str:
    """Return the name of a person in katakana: `サカモトリュウイチ`; empty unless it begins with one that the dictionary has."""
    if not _HAN_RE.match(name):
        return ""
    first = next(iter(_open_dictionary().tokenize(name)), None)
    is_person = isinstance(first, Token) and first.part_of_speech.startswith(_PERSON)
    return read_japanese(name) if is_person else ""


@lru_cache(maxsize=1)
def _open_dictionary() -> Tokenizer:
    return Tokenizer(mmap=True)
