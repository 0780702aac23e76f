"""Names of all scripts in Latin letters, by tables of our own: another platform delivers these for the same name.

The tables are small and follow common usage, not one standard. They must not come from a library that linkage uses, because a mirror proves
nothing.
"""

from __future__ import annotations

import polars as pl

from simulator.romanised import romanise


def _split_parts(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_KANA_ROWS = (
    ("", "アイウエオ"),
    ("k", "カキクケコ"),
    ("g", "ガギグゲゴ"),
    ("s", "サシスセソ"),
    ("z", "ザジズゼゾ"),
    ("t", "タチツテト"),
    ("d", "ダヂヅデド"),
    ("n", "ナニヌネノ"),
    ("h", "ハヒフヘホ"),
    ("b", "バビブベボ"),
    ("p", "パピプペポ"),
    ("m", "マミムメモ"),
    ("r", "ラリルレロ"),
)
_HEPBURN = {"シ": "shi", "チ": "chi", "ツ": "tsu", "フ": "fu", "ジ": "ji", "ヂ": "ji", "ヅ": "zu"}
_KANA = {letter: lead + vowel for lead, row in _KANA_ROWS for letter, vowel in zip(row, "aiueo", strict=True)} | _HEPBURN
_KANA |= {"ヤ": "ya", "ユ": "yu", "ヨ": "yo", "ワ": "wa", "ヲ": "o", "ン": "n"}
# Hiragana are 0x60 below katakana in Unicode.
_KANA |= {chr(ord(letter) - 0x60): latin for letter, latin in _KANA.items()} | {"ー": ""}

_HAN = dict(
    zip(
        "愛夢夜月星花風雨雪海山空光心人天地火水木金春夏秋冬朝日青白黒"
        "赤紅紫音声歌舞恋情思忘時世界道路"
        "東西南北京城門橋川江河林森鳥龍虎馬雲雷石玉銀"
        "鏡影幻永遠希望自由平和生命涙笑顔旅",
        _split_parts(
            "ai meng ye yue xing hua feng yu xue hai shan kong guang xin ren tian di huo shui mu jin chun "
            "xia qiu dong zhao ri qing bai hei chi hong zi yin sheng ge wu lian qing si wang shi shi jie "
            "dao lu dong xi nan bei jing cheng men qiao chuan jiang he lin sen niao long hu ma yun lei shi "
            "yu yin jing ying huan yong yuan xi wang zi you ping he sheng ming lei xiao yan lü"
        ),
        strict=True,
    )
)

# The twelfth lead is silent.
_LEADS = (*_split_parts("g kk n d tt r m b pp s ss"), "", *_split_parts("j jj ch k t p h"))
_VOWELS = _split_parts("a ae ya yae eo e yeo ye o wa wae oe yo u wo we wi yu eu ui i")
_TAILS = ("", *_split_parts("k k k n n n t l k m l l l p l m p p t t ng t t k t p t"))
_FIRST_SYLLABLE, _LAST_SYLLABLE = 0xAC00, 0xD7A3
_HANGUL = {
    chr(code): _LEADS[(code - _FIRST_SYLLABLE) // 588]
    + _VOWELS[(code - _FIRST_SYLLABLE) % 588 // 28]
    + _TAILS[(code - _FIRST_SYLLABLE) % 28]
    for code in range(_FIRST_SYLLABLE, _LAST_SYLLABLE + 1)
}
_HEBREW = dict(zip("אבגדהוזחטיכלמנסעפצקרשתךםןףץ", _split_parts("a b g d h o z ch t i k l m n s a p tz k r sh t kh m n f tz"), strict=True))
_ARABIC = dict(
    zip("ابتثجحخدذرزسشصضطظعغفقكلمنهوية", _split_parts("a b t th j h kh d dh r z s sh s d t z a gh f q k l m n h u i a"), strict=True)
)
_LETTERS = _KANA | _HAN | _HANGUL | _HEBREW | _ARABIC
_FOREIGN = r"[\p{Cyrillic}\p{Greek}\p{Hiragana}\p{Katakana}\p{Han}\p{Hangul}\p{Hebrew}\p{Arabic}]"


def is_foreign(text: pl.Expr) -> pl.Expr:
    """Return whether a text has letters of another script than the Latin one."""
    return text.str.contains(_FOREIGN)


def transcribe(text: pl.Expr) -> pl.Expr:
    """Return the text in Latin letters, its words capitalised; a text without foreign letters is unchanged."""
    latin = romanise(text).str.replace_many(_LETTERS)
    return pl.when(is_foreign(text)).then(latin.str.to_titlecase()).otherwise(text)
