"""Parts, volumes and numbers in a key: `pt ii`, `part two` and `parte 2` are `part 2`; `volume 3` is `vol 3`; `number one` is `no 1`.

A numeral counts only after a counting word, so `i`, `v` and `one` elsewhere stay words. Keys without such a word (nearly all) are
unchanged: columns test `MAY_HAVE_PARTS` first. Numbers that stand alone (`Rocky II`) do not belong here.
"""

from __future__ import annotations

import re

_COUNTED = {
    "part": "part parts pt pts partie parties parte parti teil deel czesc часть част",
    "vol": "vol vols volume volumes volumen том",
    "no": "no nos nr num number numero nummer",
    "chapter": "chapter ch kapitel chapitre",
    "act": "act akt acte",
    "scene": "scene",
    "episode": "episode ep",
    "phase": "phase",
    "book": "book",
    "movement": "movement mvt",
}
_NAMES = {name: unit for unit, names in _COUNTED.items() for name in names.split()}
COUNTING_WORDS = frozenset(_NAMES)
_WRITTEN = {
    name: str(value)
    for value, name in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1)
}
_ROMAN = {
    name: str(value)
    for value, name in enumerate(
        (
            "i",
            "ii",
            "iii",
            "iv",
            "v",
            "vi",
            "vii",
            "viii",
            "ix",
            "x",
            "xi",
            "xii",
            "xiii",
            "xiv",
            "xv",
            "xvi",
            "xvii",
            "xviii",
            "xix",
            "xx",
        ),
        1,
    )
}
_NEVER_WRITTEN = frozenset({"no", "nos", "nr", "num", "numero", "nummer"})
"""`no one` is nobody; `number one` is a number."""
_ATTACHED = re.compile(r"^(part|pts?|vol|no|nr)([0-9]{1,3})$")

MAY_HAVE_PARTS = rf"(?:^| )(?:{'|'.join(_NAMES)})(?: ?[0-9]| (?:[ivx]+|{'|'.join(_WRITTEN)})(?: |$))"
"""Matches every key that `number_parts` changes; Rust and Python read it alike."""
_MAY_HAVE_PARTS_RE = re.compile(MAY_HAVE_PARTS)


def is_numeral(token: str) -> bool:
    """Return whether a word after `part` is its number: `2`, `ii`, `two`, `b`."""
    return len(token) == 1 or token.isdigit() or token in _ROMAN or token in _WRITTEN


def number_parts(key: str) -> str:
    """Write the numbers of parts and volumes in a key as digits."""
    if not _MAY_HAVE_PARTS_RE.search(key):
        return key
    tokens = [word for token in key.split(" ") for word in _split_attached(token)]
    words: list[str] = []
    index = 0
    while index < len(tokens):
        name, unit = tokens[index], _NAMES.get(tokens[index])
        index += 1
        number = _read_number(tokens, index, name) if unit else None
        if number is None:
            words.append(name)
            continue
        words.append(unit or name)
        # One counting word may lead several numbers: `Parts 1 and 2`, `Pts. I & II`.
        while number is not None:
            words.append(number)
            index += 1
            number = _read_number(tokens, index, name)
            if number is None and index + 1 < len(tokens) and tokens[index] == "and":
                number = _read_number(tokens, index + 1, name)
                if number is not None:
                    words.append("and")
                    index += 1
    return " ".join(words)


def _split_attached(token: str) -> tuple[str, ...]:
    attached = _ATTACHED.match(token)
    return (attached[1], attached[2]) if attached else (token,)


def _read_number(tokens: list[str], index: int, name: str) -> str | None:
    """Return the numeral at this place in digits; a single letter counts only at the end or before another numeral."""
    if index >= len(tokens):
        return None
    token = tokens[index]
    if token.isascii() and token.isdigit():
        # `Part 02` and `Part 2` are one part.
        return token.lstrip("0") or "0"
    if token in _WRITTEN and name not in _NEVER_WRITTEN:
        return _WRITTEN[token]
    behind = tokens[index + 1] if index + 1 < len(tokens) else ""
    # `Part I` at the end is a number; `Part I Love` is not.
    is_last = behind in {"", "and"} or behind in _ROMAN or behind in _NAMES
    return _ROMAN[token] if token in _ROMAN and (len(token) > 1 or is_last) and (len(token) > 1 or name not in _NEVER_WRITTEN) else None
