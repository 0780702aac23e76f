"""Words of names in one plain spelling, for the wide comparison: `twenty two`, `zweiundzwanzig` and `22`; `sinfonie` and `symphony`.

`read_plain_words` serves names of the query and of documents alike, so a word that means two things (`once` is eleven in Spanish) costs
nothing. The order stays. Articles and `and` are dropped. Numbers belong in number_words.py,
comparison in line_comparison.py.
"""

from __future__ import annotations

import re
from functools import lru_cache

from catalog_store.name_keys.spellings import unify_spellings
from catalog_store.search.number_words import JOINERS, NAMES_OF_NUMBERS, NEVER_ALONE, join_numbers, read_number

LEFT_OUT = frozenset({"the", "a", "an", "and"})
_ROMAN = {
    roman: str(value)
    for value, roman in enumerate(
        ("ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv", "xvi", "xvii", "xviii", "xix", "xx"), 2
    )
    if len(roman) > 1
}
"""Numerals of two letters and more; `i`, `v` and `x` are words."""

_WITHOUT = re.compile("(^| )w o(?= [a-z]{2})")
"""`W/O You`, but not the letters of `W.O.L.D.`."""
_HIRAGANA = {katakana: katakana - 0x60 for katakana in (*range(0x30A1, 0x30F7), 0x30FD, 0x30FE)}
_KATAKANA = {hiragana: katakana for katakana, hiragana in _HIRAGANA.items()}
"""Keyboards write one syllable in either: `すきやき` and `スキヤキ`."""

_TERMS = {
    "symphony": "sinfonie symphonie sinfonia sinfonien symfonie simfonija симфония",
    "concerto": "konzert concert concierto konzerte concertos koncert concerti концерт",
    "sonata": "sonate sonaten sonatas соната sonates",
    "quartet": "quartett quatuor cuarteto quartetto",
    "piano": "klavier pianoforte fortepiano",
    "violin": "violine violon violino скрипки geige",
    "cello": "violoncello violoncelle",
    "flute": "flote flauto flaute",
    "clarinet": "klarinette clarinette",
    "oboe": "hautbois",
    "bassoon": "fagott basson fagotto",
    "trumpet": "trompete trompette tromba",
    "orchestra": "orchester orchestre orchesters orquesta оркестром",
    "overture": "ouverture obertura overtura увертюра ouverture",
    "prelude": "praeludium praludium preludio prelud preludes",
    "fugue": "fuge fuga",
    "etude": "etuden etudes study etuda этюд",
    "rhapsody": "rhapsodie rapsodie rapsodia rhapsodies",
    "hungarian": "ungarische ungarischer hongroise ungherese hungara",
    "trio": "trios terzett",
    "quintet": "quintett quintette quinteto",
    "serenade": "serenata standchen",
    "fantasy": "fantasie fantasia fantaisie phantasie",
    "seasons": "jahreszeiten stagioni saisons estaciones",
    "spring": "fruhling primavera printemps весна",
    "summer": "sommer estate ete verano лето",
    "autumn": "herbst autunno automne otono осень",
    "winter": "inverno hiver invierno зима",
    "swan": "schwanen cygnes cygne",
    "nutcracker": "nussknacker щелкунчик",
    "moonlight": "mondschein",
    "waltz": "walzer valse vals valzer вальс waltzes",
    "march": "marsch marche marcia",
    "mass": "messe missa misa",
    "dance": "tanz danse tanze danza dances",
    "romance": "romanze romanza",
    "nocturne": "notturno nocturnes nokturn ноктюрн",
    "major": "dur majeur maggiore mayor мажор",
    "minor": "moll mineur minore menor минор",
    "sharp": "diese diesis sostenido",
    "flat": "bemol bemolle",
    "no": "nr num number numero nº",
    "op": "opus соч",
    "k": "kv",
    "suite": "suiten suites",
    "variation": "variations variationen variazioni",
    "tchaikovsky": "tschaikowsky tchaikowsky tschaikowski chaikovsky tchaikovski чаиковскии",
    "handel": "haendel händel",
    "rachmaninoff": "rachmaninov rachmaninow rachmaninof рахманинов",
    "prokofiev": "prokofjew prokofieff прокофьев",
    "shostakovich": "schostakowitsch chostakovitch шостакович",
    "scriabin": "skrjabin skryabin scriabine скрябин",
    "dvorak": "dvorzak",
    "remix": "rmx ремикс remiks",
    "live": "vivo",
    "instrumental": "strumentale",
    "acoustic": "akustik akustyczna acustica acoustique akustisch",
}
_PLAIN_TERMS = {other: term for term, others in _TERMS.items() for other in others.split()}
_KEYS = {f"{letter}is": (letter, "sharp") for letter in "cdfga"} | {f"{letter}es": (letter, "flat") for letter in "cdg"}
_KEYS |= {"es": ("e", "flat"), "as": ("a", "flat")}
"""German keys, read before `dur` and `moll` alone."""
_MODES = (["dur"], ["moll"])
_CATALOGUES = ("bwv", "hwv", "kv", "op", "rv", "no", "nr", "hob", "woo", "k", "d")
_ENDINGS = ("konzert", "sonate", "sonaten", "quartett", "walzer")


@lru_cache(maxsize=65_536)
def read_plain_words(key: str) -> tuple[str, ...]:
    """Return the words of a key in one plain spelling; all of them when each would be left out."""
    if not key.isascii():
        key = key.translate(_HIRAGANA)
    elif "w o " in key:
        key = _WITHOUT.sub(r"\1without", key)
    words = unify_spellings(key).split()
    plain: list[str] = []
    for place, word in enumerate(words):
        if word in _KEYS and words[place + 1 : place + 2] in _MODES:
            plain += _KEYS[word]
        elif word in NEVER_ALONE and _is_beside_number(words, place):
            plain.append(str(read_number(word, is_beside=True)))
        else:
            plain += _read_word(word)
    # Nearly all names have no number, and nothing to join.
    joined = join_numbers(key.split(), plain) if any(map(str.isdigit, plain)) else tuple(plain)
    return joined or tuple(words)


@lru_cache(maxsize=65_536)
def _read_word(word: str) -> tuple[str, ...]:
    """Return the plain words that a word means by itself."""
    number = read_number(word)
    if word in _ROMAN or number is not None:
        return (_ROMAN.get(word) or str(number),)
    if word[-1:].isdigit() and not word.isdigit():
        return tuple(_split_catalogue(word))
    return () if word in LEFT_OUT else _split_compound(word) or (_PLAIN_TERMS.get(word, word),)


def _is_beside_number(words: list[str], place: int) -> bool:
    """Return whether the word before or behind a place is a number; words between the parts of a number do not count."""
    before = next((word for word in reversed(words[:place]) if word not in JOINERS), "")
    behind = next((word for word in words[place + 1 :] if word not in JOINERS), "")
    return any(word.isdigit() or read_number(word, is_beside=True) is not None for word in (before, behind))


def _split_compound(word: str) -> tuple[str, ...]:
    """Split a German compound of two terms: `flotenkonzert` into `flute` and `concerto`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and word != ending:
            head = word[: -len(ending)]
            term = _PLAIN_TERMS.get(head) or _PLAIN_TERMS.get(head.removesuffix("n")) or (head if head in _TERMS else None)
            return (term, _PLAIN_TERMS[ending]) if term else ()
    return ()


def _split_catalogue(word: str) -> list[str]:
    """Split `k504`, `op25` into the catalogue and the number."""
    letters = word.rstrip("0123456789")
    return [_PLAIN_TERMS.get(letters, letters), word[len(letters) :]] if letters in _CATALOGUES else [word]


def list_other_spellings(word: str) -> list[str]:
    """Return other words that a plain word may stand for in a document: names of a number, a term in other languages, katakana."""
    others = [*NAMES_OF_NUMBERS.get(word, ()), *_TERMS.get(word, "").split()]
    if word in _PLAIN_TERMS:
        others += [_PLAIN_TERMS[word], *_TERMS[_PLAIN_TERMS[word]].split()]
    if not word.isascii():
        others.append(word.translate(_KATAKANA))
    return others
