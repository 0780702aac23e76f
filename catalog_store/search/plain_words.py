"""Words of names in one plain spelling, for the wide comparison: `twenty two`, `zweiundzwanzig` and `22`; `sinfonie` and `symphony`.

`read_plain_words` serves names of the query and of documents alike, so a word that means two things (`once` is eleven in Spanish) costs
nothing. The order stays. Articles and `and` are dropped. The tables know six languages. Comparison belongs in line_comparison.py.
"""

from __future__ import annotations

from functools import lru_cache

from catalog_store.name_keys.spellings import unify_spellings

LEFT_OUT = frozenset({"the", "a", "an", "and"})
_ROMAN = {
    roman: str(value)
    for value, roman in enumerate(
        ("ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv", "xvi", "xvii", "xviii", "xix", "xx"), 2
    )
    if len(roman) > 1
}
"""Numerals of two letters and more; `i`, `v` and `x` are words."""

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
    "twenty thirty forty fifty sixty seventy eighty ninety",
    "hundred thousand",
)
_GERMAN = (
    "null eins zwei drei vier fuenf sechs sieben acht neun zehn elf zwoelf dreizehn vierzehn fuenfzehn sechzehn siebzehn achtzehn neunzehn",
    "zwanzig dreissig vierzig fuenfzig sechzig siebzig achtzig neunzig",
    "hundert tausend",
)
_FRENCH = (
    "zero un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dixsept dixhuit dixneuf",
    "vingt trente quarante cinquante soixante soixantedix quatrevingt quatrevingtdix",
    "cent mille",
)
_SPANISH = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis diecisiete dieciocho diecinueve",
    "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "cien mil",
)
_ITALIAN = (
    (
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette diciotto"
        " diciannove"
    ),
    "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "cento mille",
)
_PORTUGUESE = (
    "zero um dois tres quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete dezoito dezenove",
    "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
    "cem mil",
)
_LANGUAGES = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE)
_NEVER_NUMBERS = frozenset({"un", "uno", "um", "cent", "sei", "mil", "onze", "dix"})
"""Pronouns, articles and coins more often than numbers."""


def _list_numbers() -> dict[str, int]:
    numbers: dict[str, int] = {}
    for language in _LANGUAGES:
        below = _list_below_100(*language[:2])
        hundred, thousand = language[2].split()
        numbers |= below | {hundred: 100, thousand: 1000}
        # German and Italian join hundreds, too: `hundertvierundneunzig`, `duecento`.
        if language in {_GERMAN, _ITALIAN}:
            for count, unit in enumerate(("", *language[0].split()[1:10])):
                front = f"{unit.removesuffix('s') if count == 1 else unit}{hundred}"
                numbers |= {f"{front}{name}": 100 * max(1, count) + value for name, value in (("", 0), *below.items())}
    # Name keys write umlauts without dots.
    numbers |= {name.replace("ue", "u").replace("oe", "o"): value for name, value in list(numbers.items())}
    return {name: value for name, value in numbers.items() if name not in _NEVER_NUMBERS}


def _list_below_100(units: str, tens: str) -> dict[str, int]:
    names = units.split()
    numbers = {name: value for value, name in enumerate(names)}
    for place, ten in enumerate(tens.split(), 2):
        numbers[ten] = 10 * place
        for value in range(1, 10):
            unit = names[value]
            # `twentytwo` is written so by some; German, Spanish and Italian join the two as below.
            joined = [f"{unit.removesuffix('s')}und{ten}" if value == 1 else f"{unit}und{ten}"] if "zwei" in names else [ten + unit]
            if "uno" in names:
                joined += [f"{ten[:-1]}i{unit}", ten[:-1] + unit]
            numbers |= dict.fromkeys(joined, 10 * place + value)
    return numbers


_NUMBERS = _list_numbers()
_MOST_NAMED = 100
"""Larger numbers are looked up in digits alone."""
_NAMES_OF_NUMBERS: dict[str, tuple[str, ...]] = {}
for _name, _value in _NUMBERS.items():
    if _value <= _MOST_NAMED:
        _NAMES_OF_NUMBERS[str(_value)] = (*_NAMES_OF_NUMBERS.get(str(_value), ()), _name)

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
_CATALOGUES = ("bwv", "hwv", "kv", "op", "rv", "no", "nr", "hob", "woo", "k", "d")
_ENDINGS = ("konzert", "sonate", "sonaten", "quartett", "walzer")


@lru_cache(maxsize=65_536)
def read_plain_words(key: str) -> tuple[str, ...]:
    """Return the words of a key in one plain spelling; all of them when each would be left out."""
    words = unify_spellings(key).split()
    plain: list[str] = []
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if word in _KEYS and following in {"dur", "moll"}:
            plain += _KEYS[word]
        elif word in _ROMAN:
            plain.append(_ROMAN[word])
        elif word in _NUMBERS:
            plain.append(str(_NUMBERS[word]))
        elif word[-1:].isdigit() and not word.isdigit():
            plain += _split_catalogue(word)
        elif word not in LEFT_OUT:
            plain += _split_compound(word) or (_PLAIN_TERMS.get(word, word),)
    return _join_numbers(key.split(), plain) or tuple(words)


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


def _join_numbers(words: list[str], plain: list[str]) -> tuple[str, ...]:
    """Join two numbers that were spelt as a year is said: `nineteen oh one`, `twenty five twenty five`."""
    if all(word in words for word in plain):
        return tuple(plain)
    joined: list[str] = []
    for word in plain:
        is_spelt = word.isdigit() and word not in words
        if is_spelt and joined and joined[-1].isdigit() and joined[-1] not in words and len(word) == len(joined[-1]) == 2:  # noqa: PLR2004
            joined[-1] += word
        elif is_spelt and joined and joined[-1] == "1" != words[0] and len(word) == 2:  # noqa: PLR2004
            joined[-1] = f"1{word}"
        elif is_spelt and len(joined) > 1 and joined[-1] in {"oh", "o"} and joined[-2].isdigit() and len(word) == 1:
            joined[-2:] = [f"{joined[-2]}0{word}"]
        else:
            joined.append(word)
    return tuple(joined)


def list_other_spellings(word: str) -> list[str]:
    """Return other words that a plain word may stand for in a document: names of a number, a term in other languages."""
    others = [*_NAMES_OF_NUMBERS.get(word, ()), *_TERMS.get(word, "").split()]
    if word in _PLAIN_TERMS:
        others += [_PLAIN_TERMS[word], *_TERMS[_PLAIN_TERMS[word]].split()]
    return others
