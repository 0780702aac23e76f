"""Numbers as people say them, in six languages: `spell_number(1999, "de")` is `neunzehnhundertneunundneunzig`.

Queries of simulated people use it (loose_queries.py). The search reads such words with tables of its own
(catalog_store/search/number_words.py), so that neither proves itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = 9_999
_UNITS = {
    "en": (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
    ),
    "de": (
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
    ),
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf",
    "es": (
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve"
        " veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve"
    ),
    "it": (
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette diciotto"
        " diciannove"
    ),
    "pt": "zero um dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete dezoito dezenove",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "pt": "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
}
_HUNDREDS = {
    "es": "ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos",
    "pt": "cento duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos",
}
LANGUAGES = tuple(_UNITS)
_YEARS = range(1100, 2000)
"""English and German say hundreds here: `nineteen ninety nine`."""


def spell_number(value: int, language: str) -> str:
    """Return the words for a number from 0 to LARGEST in one of LANGUAGES."""
    if value in _YEARS and language == "en":
        rest = value % 100
        behind = "hundred" if not rest else f"{'oh ' if rest < 10 else ''}{_spell_below_100(rest, language)}"  # noqa: PLR2004
        return f"{_spell_below_100(value // 100, language)} {behind}"
    if value in _YEARS and language == "de":
        return f"{_spell_below_100(value // 100, language)}hundert{_spell_below_100(value % 100, language) if value % 100 else ''}"
    thousands, rest = divmod(value, 1000)
    if not thousands:
        return _spell_below_1000(rest, language)
    return _join(language, _THOUSANDS[language](thousands), _spell_below_1000(rest, language) if rest else "")


_THOUSANDS: dict[str, Callable[[int], str]] = {
    "en": lambda count: f"{_spell_below_100(count, 'en')} thousand",
    "de": lambda count: f"{'ein' if count == 1 else _spell_below_100(count, 'de')}tausend",
    "fr": lambda count: "mille" if count == 1 else f"{_spell_below_100(count, 'fr')} mille",
    "es": lambda count: "mil" if count == 1 else f"{_spell_below_100(count, 'es')} mil",
    "it": lambda count: "mille" if count == 1 else f"{_spell_below_100(count, 'it')}mila",
    "pt": lambda count: "mil" if count == 1 else f"{_spell_below_100(count, 'pt')} mil",
}


def _spell_below_1000(value: int, language: str) -> str:
    count, rest = divmod(value, 100)
    below = _spell_below_100(rest, language) if rest or not count else ""
    if not count:
        return below
    if language in _HUNDREDS:
        exact = {"es": "cien", "pt": "cem"}[language]
        return exact if value == 100 else _join(language, _HUNDREDS[language].split()[count - 1], below)  # noqa: PLR2004 - a hundred
    unit = _UNITS[language].split()[count]
    hundreds = {
        "en": f"{unit} hundred",
        "de": f"{'ein' if count == 1 else unit}hundert",
        "fr": "cent" if count == 1 else f"{unit} cent{'' if rest else 's'}",
        "it": "cento" if count == 1 else f"{unit}cento",
    }
    return _join(language, hundreds[language], below)


def _spell_below_100(value: int, language: str) -> str:
    units, tens = _UNITS[language].split(), _TENS[language].split()
    if value < len(units):
        return units[value]
    ten, unit = tens[value // 10 - 2], units[value % 10]
    if language == "fr":
        return _spell_french(value)
    if not value % 10:
        return ten
    if language == "de":
        return f"{unit.removesuffix('s') if value % 10 == 1 else unit}und{ten}"
    if language == "it":
        return (ten[:-1] if unit[0] in "uo" else ten) + unit
    return {"en": f"{ten} {unit}", "es": f"{ten} y {unit}", "pt": f"{ten} e {unit}"}[language]


def _spell_french(value: int) -> str:
    """Return a number from 20 to 99: the seventies and nineties go on from sixty and from four times twenty."""
    ten = _TENS["fr"].split()[value // 10 - 2]
    unit = value % 20 if value >= 60 else value % 10  # noqa: PLR2004 - the sixties begin
    if not unit:
        return f"{ten}s" if value == 80 else ten  # noqa: PLR2004
    is_joined = unit in {1, 11} and value < 80  # noqa: PLR2004
    return f"{ten} et {_UNITS['fr'].split()[unit]}" if is_joined else f"{ten}-{_UNITS['fr'].split()[unit]}"


def _join(language: str, high: str, low: str) -> str:
    if not low:
        return high
    if language in {"de", "it"}:
        return high + low
    # Portuguese says `e` at each joint, or none before hundreds; both are understood.
    return f"{high} e {low}" if language == "pt" else f"{high} {low}"
