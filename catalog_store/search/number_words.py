"""Numbers that are written as words in six languages: `neunundneunzig`, `mil novecientos noventa y nueve`, `nineteen oh one`.

`read_number` reads one word, and `join_numbers` joins the numbers of neighbouring words. English numbers below a hundred arrive in digits
(catalog_store/name_keys/spellings.py). Words of other meanings belong in plain_words.py.
"""

from __future__ import annotations

from functools import lru_cache

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
LANGUAGES = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE)
"""For each language: the numbers below twenty, the tens from twenty on, hundred and thousand."""
_SPANISH_HUNDREDS = "ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
_PORTUGUESE_HUNDREDS = "cento duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos"
_HUNDREDS = {"cents": 100, "vingts": 20, "quatrevingts": 80}
_HUNDREDS |= {name: 100 * count for names in (_SPANISH_HUNDREDS, _PORTUGUESE_HUNDREDS) for count, name in enumerate(names.split(), 1)}
_THOUSANDS = ("tausend", "mille", "mila")
"""Words inside a longer number: `millenovecentonovantadue`."""
NEVER_ALONE = frozenset({"un", "uno", "um", "cent", "sei", "mil", "onze", "dix"})
"""Pronouns, articles and coins more often than numbers. Beside another number they are numbers."""
_SHORTEST_JOINED = len("duemila")
JOINERS = frozenset({"y", "e", "et", "und"})
"""Words between the parts of a number."""
_MOST_NAMED = 100
_TEENS = range(10, 20)


def _list_numbers() -> dict[str, int]:
    numbers: dict[str, int] = {}
    for language in LANGUAGES:
        below = _list_below_100(*language[:2])
        hundred, thousand = language[2].split()
        numbers |= below | {hundred: 100, thousand: 1000}
        # German and Italian join hundreds, too: `hundertvierundneunzig`, `duecento`; and German has `neunzehnhundert`.
        if language in {_GERMAN, _ITALIAN}:
            for count, unit in enumerate(("", *language[0].split()[1:])):
                front = f"{unit.removesuffix('s') if count == 1 else unit}{hundred}"
                numbers |= {f"{front}{name}": 100 * max(1, count) + value for name, value in (("", 0), *below.items())}
    numbers |= _HUNDREDS
    # Name keys write umlauts without dots.
    return numbers | {name.replace("ue", "u").replace("oe", "o"): value for name, value in numbers.items()}


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
NAMES_OF_NUMBERS: dict[str, tuple[str, ...]] = {}
"""Words for each number up to a hundred. Larger numbers are looked up in digits alone."""
for _name, _value in _NUMBERS.items():
    if _value <= _MOST_NAMED and _name not in NEVER_ALONE:
        NAMES_OF_NUMBERS[str(_value)] = (*NAMES_OF_NUMBERS.get(str(_value), ()), _name)


def read_number(word: str, *, is_beside: bool = False) -> int | None:
    """Return the number that a word means, None for other words; `is_beside` tells that another number is beside it."""
    value = _NUMBERS.get(word)
    if value is not None:
        return value if is_beside or word not in NEVER_ALONE else None
    # Most words are rejected by their length.
    for thousand in _THOUSANDS if len(word) >= _SHORTEST_JOINED else ():
        if thousand in word:
            left, _, right = word.partition(thousand)
            count, rest = (_NUMBERS.get(left) if left not in {"", "ein"} else 1), (_NUMBERS.get(right) if right else 0)
            return None if count is None or rest is None else 1000 * count + rest
    return None


@lru_cache(maxsize=16_384)
def is_number(word: str) -> bool:
    """Return whether a word is a number, in digits or spelt."""
    return word.isdigit() or read_number(word) is not None


def join_numbers(words: list[str], plain: list[str]) -> tuple[str, ...]:
    """Join the numbers that were spelt: `nineteen oh one`, `mil novecientos noventa y nueve`; `words` are the words as written."""
    if all(word in words for word in plain):
        return tuple(plain)
    joined: list[str] = []
    for word in plain:
        if not (word.isdigit() and word not in words):
            joined.append(word)
            continue
        between = 1 if joined and joined[-1] in JOINERS else 0
        before = joined[-1 - between] if len(joined) > between else ""
        # `one` stays a word alone: it is a pronoun more often. The first word of `one thousand and one nights` is a number.
        both = _join_two(before, word, joined) if before.isdigit() and (before not in words or before == "1" != words[0]) else None
        if both is not None:
            joined[len(joined) - 1 - between :] = [both]
        elif len(joined) > 1 and joined[-1] in {"oh", "o"} and joined[-2].isdigit() and len(word) == 1:
            joined[-2:] = [f"{joined[-2]}0{word}"]
        else:
            joined.append(word)
    return tuple(joined)


def _join_two(one: str, other: str, joined: list[str]) -> str | None:
    """Return the number of two that follow each other, None when they are two numbers."""
    high, low = int(one), int(other)
    for thousand in (1000, 100):
        # `mille neuf cent`: only what is behind the thousand is multiplied.
        rest = high % 1000
        if low == thousand and 0 < rest < low and (high == rest or low < 1000):  # noqa: PLR2004
            return str(high - rest + rest * low)
    if _follows(high, low):
        # French counts by twenties: `quatre vingt dix neuf`.
        return str(high + low if (high % 100, low) != (4, 20) else high + 76)
    # A year as it is said: `nineteen ninety nine`, `twenty five twenty five`.
    is_year = joined[-1] == one and len(other) == 2 and (len(one) == 2 or one == "1")  # noqa: PLR2004
    return one + other if is_year else None


def _follows(high: int, low: int) -> bool:
    """Return whether a number is said behind a larger one: `two hundred` `five`, `ninety` `nine`, `quatre` `vingt`, `soixante` `dix`."""
    tens = high % 100
    if low >= 100:  # noqa: PLR2004
        return 1000 <= high != low < 1000 and high % 1000 == 0  # noqa: PLR2004
    if not tens or low <= 0:
        return low > 0 and high >= 100  # noqa: PLR2004
    if (tens, low) == (4, 20) or (tens in {60, 80} and low in _TEENS):
        return True
    # `dix sept`; a teen has no other unit.
    return tens % 10 == 0 and low < 10 and (tens > 10 or low >= 7)  # noqa: PLR2004
