"""The sound of names of other scripts in Latin letters: further evidence beside the key of a name, and never a shown name.

`romanise` writes a folded text in Latin letters, a character at a time by the tables of anyascii; combinations of kana follow Hepburn.
`compare_sounds` measures how alike two folded texts sound. Platforms follow no standard (`Yulia`, `Julija`; `Tokyo`, `Toukyou`), so letters
of one sound count as equal. Arabic and Hebrew write few vowels, so only consonants count there. A Chinese character in a Japanese text has
a reading that no table knows, so any letters may stand for it: `さくら学院` sounds like `Sakura Gakuin` by its kana.
Out of scope: which names may be one artist (pipeline/linkage/guards.py).
"""

# ruff: noqa: RUF001 - letters of other scripts look like Latin ones, on purpose
from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import polars as pl
from anyascii import anyascii
from rapidfuzz.distance import OSA

CACHED_TEXTS = 65_536
SHORTEST = 5
"""In letters. Two shorter names sound alike only if they are equal: `Kino` and `Kyou` are half alike."""
LEAST_READABLE_LETTERS = 3
"""In letters, of the kana or Latin letters in a Japanese name, or of the Latin part of any other."""
MOST_LETTERS = 6
"""Longest reading of one Chinese character, `kokoro`."""
LEAST_SHARE = 0.25
"""Share of a Latin name that the kana and Latin letters of a Japanese one must spell."""

_SMALL = str.maketrans(
    dict(zip("ゃゅょャュョっッוχ", ("\1a", "\1u", "\1o", "\1a", "\1u", "\1o", "\2", "\2", "w", "h"), strict=True))
    | {small: f"\3{vowel}" for smalls in ("ぁぃぅぇぉ", "ァィゥェォ") for small, vowel in zip(smalls, "aiueo", strict=True)}
)
"""Small kana change the syllable before them, so each is marked by how it does. The Hebrew vav is a vowel more often than a v,
and `Χάρις` is `Haris` more often than `Charis`."""
_GREEK = {"μπ": "b", "ου": "ou", "αυ": "av", "ευ": "ev", "ηυ": "iv", "γγ": "ng", "γκ": "g", "τζ": "z", "ντ": "d"}
"""Pairs of Greek letters of one sound: `Ζορμπά` is `Zorba`. After a vowel `ντ` stays: `Αντώνης` is `Antonis`, `Νταλάρας` is `Dalaras`."""
_GREEK_RE = re.compile("μπ|ου|αυ|ευ|ηυ|γγ|γκ|τζ|(?<![αεηιουω])ντ")
_COMBINED = tuple(
    (re.compile(pattern), into)
    for pattern, into in (
        ("(sh|ch|j)i\1", r"\1"),
        ("i\1", "y"),
        ("[aiueo]\3", ""),
        ("\2([a-z])", r"\1\1"),
    )
)
_SCRIPTS = ((0x01, 0x06), (0x09, 0x11), (0x1E, 0x1F), (0x30, 0x31), (0x4E, 0x9F), (0xAC, 0xD7))
"""First and last block of 256 characters: European, Hebrew, Arabic, Indian and Thai letters, kana, Chinese characters, Hangul."""
_NO_LETTER = re.compile("[^a-z0-9]")
_SMOOTHED = (
    *(("shch", "S"), ("sch", "S"), ("tch", "C"), ("sh", "S"), ("ch", "C"), ("zh", "S"), ("kh", "h"), ("gh", "g"), ("ph", "f"), ("th", "t")),
    *(("ts", "C"), ("tz", "C"), ("ck", "k"), ("ks", "x"), ("yi", "i"), ("iy", "i"), ("ou", "o"), ("eo", "o"), ("eu", "u"), ("ae", "e")),
    *(("c", "k"), ("q", "k"), ("w", "v"), ("y", "i"), ("j", "i"), ("z", "s")),
    *zip("0123456789", ("sero", "one", "tvo", "tre", "for", "five", "six", "seven", "eigt", "nine"), strict=True),
)
"""Letters of one sound as one. A digit sounds like its English name, because keys hold `5` for `Five`: `ピチカート・ファイヴ`."""
_SKELETON = (
    *(("tch", "k"), ("kh", ""), ("ch", "k"), ("ts", "k"), ("tz", "k"), ("dz", "k"), ("dj", "k")),
    *((letter, "k") for letter in "gcqsxz"),
    *(("d", "t"), ("b", "p"), ("f", "p"), ("v", "p"), ("l", "r")),
    *((letter, "") for letter in "aeiouyjhw"),
    *zip("0123456789", ("kr", "n", "t", "tr", "pr", "p", "k", "kpn", "kt", "n"), strict=True),
)
"""Consonants that spellings exchange (`Čorba`, `Chorba`; `Julija`, `Yulia`) as one letter, without vowels."""
_REPEATED = re.compile(r"(.)\1+")
HEARD, CONSONANTS = dict(_SMOOTHED), dict(_SKELETON)
"""The two tables above."""
_HEARD_RE = re.compile("|".join(HEARD))
_HARD = str.maketrans({"\0": "", "\1": "k"} | {letter: into for letter, into in _SKELETON if len(letter) == 1})
_HARD_PAIRS = tuple((letters, "\1" if into else "\0") for letters, into in _SKELETON if len(letters) > 1)
"""The same table for `str.translate`: no pair of letters begins with the last letter of another one, so each can be replaced in turn."""
ABJAD = re.compile("[\u0590-\u05ff\u0600-\u06ff]")
_HAN = "\u3005\u3400-\u9fff\U00020000-\U0003ffff"
_CHINESE, _READABLE, _RUNS = re.compile(f"[{_HAN}]"), re.compile("[a-z\u3041-\u30ff]"), re.compile(f"[{_HAN}]+|[^{_HAN}]+")


@lru_cache(maxsize=1)
def load_letters() -> None:
    """Read the tables of the scripts of most names, once in a process: 20 ms, which the first queries would take otherwise."""
    for first, last in _SCRIPTS:
        for block in range(first, last + 1):
            anyascii(chr(block << 8 | 0x20))


@lru_cache(maxsize=CACHED_TEXTS)
def romanise(folded: str) -> str:
    """Return the text in Latin letters and digits, without spaces; empty when nothing in it has a sound."""
    if folded.isascii():
        return folded if folded.isalnum() else _NO_LETTER.sub("", folded)
    # Folding takes syllables of Hangul and voiced kana apart.
    text = _GREEK_RE.sub(lambda pair: _GREEK[pair[0]], unicodedata.normalize("NFC", folded))
    text = anyascii(text.translate(_SMALL)).lower()
    # Most texts have no small kana: the test takes a tenth of the patterns.
    if "\1" in text or "\2" in text or "\3" in text:
        for pattern, into in _COMBINED:
            text = pattern.sub(into, text)
    return text if text.isalnum() and text.isascii() else _NO_LETTER.sub("", text)


def build_sound_key_series(texts: pl.Series) -> pl.Series:
    """Return the consonants of folded texts without nulls, those of one sound as one letter: a key by which spellings of one sound meet.

    Of a name in two scripts only the Latin part counts. Only distinct texts of other scripts are read one by one.
    """
    is_latin = texts.str.len_bytes() == texts.str.len_chars()
    others = texts.filter(~is_latin).unique()
    sounds = pl.Series([extract_latin_name(text) or romanise(text) for text in others], dtype=pl.String)
    joined = pl.DataFrame({"text": texts}).join(
        pl.DataFrame({"text": others, "sound": sounds}), on="text", how="left", maintain_order="left"
    )
    romanised = joined.select(pl.coalesce("sound", pl.col("text").str.replace_all("[^a-z0-9]", ""))).to_series()
    patterns, letters = list(CONSONANTS), list(CONSONANTS.values())
    reduced = romanised.str.replace_many(patterns, letters, leftmost=True)
    # Rust has no references to groups, so each doubled consonant is a pattern; four in a row are two passes.
    consonants = "kmnprt"
    for _ in range(2):
        reduced = reduced.str.replace_many([letter * 2 for letter in consonants], list(consonants))
    return reduced


@lru_cache(maxsize=CACHED_TEXTS)
def build_sound_key(folded: str) -> str:
    """Return the sound key of one text, as `build_sound_key_series` does for each of a column."""
    return extract_consonants(extract_latin_name(folded) or romanise(folded))


def extract_consonants(latin: str) -> str:
    """Return the consonants of Latin letters and digits, those of one sound as one letter, none of them twice in a row."""
    found = replace_consonants(latin)
    return _REPEATED.sub(r"\1", found) if _REPEATED.search(found) else found


def replace_consonants(latin: str) -> str:
    """Return the consonants of Latin letters and digits, those of one sound as one letter."""
    # A regular expression with a function takes five times as long.
    for letters, into in _HARD_PAIRS:
        if letters in latin:
            latin = latin.replace(letters, into)
    return latin.translate(_HARD)


def extract_latin_name(folded: str) -> str:
    """Return the Latin part of a name in two scripts, `봄날 (Spring Day)`, without spaces; empty when it has no such part."""
    latin = "" if folded.isascii() else _NO_LETTER.sub("", folded)
    return latin if len(latin) >= LEAST_READABLE_LETTERS else ""


def compare_sounds(one: str, other: str) -> float:
    """Return how alike two folded texts sound, 0 to 1."""
    for japanese, latin in ((one, other), (other, one)):
        if _READABLE.search(japanese) and _CHINESE.search(japanese):
            return float(_can_read_as(japanese, romanise(latin)))
    sounds = [romanise(one), romanise(other)]
    consonants = list(map(extract_consonants, sounds))
    # Korean and Japanese put vowels between consonants: `블랙핑크` is `beullaekpingkeu`.
    if consonants[0] == consonants[1] and len(consonants[0]) >= SHORTEST:
        return 1.0
    sounds = consonants if ABJAD.search(one + other) else [_replace(sound, _HEARD_RE, HEARD) for sound in sounds]
    if min(map(len, sounds)) < SHORTEST:
        return float(sounds[0] == sounds[1] != "")
    return OSA.normalized_similarity(*sounds)


def _replace(romanised: str, pattern: re.Pattern[str], letters: dict[str, str]) -> str:
    return _REPEATED.sub(r"\1", pattern.sub(lambda match: letters[match[0]], romanised))


def _can_read_as(japanese: str, latin: str) -> bool:
    """Return whether kana and Latin letters of the text are in the Latin one in their order, with letters for each Chinese character."""
    parts, readable = [], 0
    for run in _RUNS.findall(unicodedata.normalize("NFC", japanese)):
        if _CHINESE.match(run):
            parts.append(f".{{{len(run)},{MOST_LETTERS * len(run)}}}")
        else:
            sound = _replace(romanise(run), _HEARD_RE, HEARD)
            parts.append(re.escape(sound))
            readable += len(sound)
    smoothed = _replace(latin, _HEARD_RE, HEARD)
    pattern = re.compile("".join(parts))
    # `Hikaru Utada` is `Utada Hikaru`: keys have no spaces, so each turn of the letters is tried.
    turns = (smoothed[place:] + smoothed[:place] for place in range(len(smoothed)))
    return readable >= max(LEAST_READABLE_LETTERS, LEAST_SHARE * len(smoothed)) and any(map(pattern.fullmatch, turns))
