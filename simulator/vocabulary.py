# ruff: noqa: RUF001 - letters of other scripts look like Latin ones, on purpose
"""Made-up words of many scripts: the same seed gives the same words. A few words are common; the others are made of syllables.

Add a script here. Out of scope: titles and names made of words (names.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from simulator.randomness import make_generator

TITLE_WORDS = 12_000
NAME_WORDS = 24_000
LONGER_WORDS = 0.5
LONGEST_WORDS = 0.35
"""Shares of made-up words with a middle part, and with a second middle and end."""

COMMON_WORDS = [
    "love",
    "night",
    "time",
    "heart",
    "day",
    "life",
    "world",
    "baby",
    "dream",
    "light",
    "fire",
    "blue",
    "home",
    "girl",
    "summer",
    "moon",
    "sun",
    "rain",
    "river",
    "dance",
    "soul",
    "man",
    "star",
    "city",
    "sky",
    "water",
    "eyes",
    "road",
    "song",
    "black",
    "white",
    "red",
    "gold",
    "wild",
    "free",
    "lost",
    "little",
    "sweet",
    "long",
    "last",
    "first",
    "new",
    "old",
    "good",
    "bad",
    "crazy",
    "lonely",
    "golden",
    "broken",
    "dark",
    "high",
    "deep",
    "slow",
    "fast",
    "forever",
    "tonight",
    "tomorrow",
    "yesterday",
    "morning",
    "midnight",
    "winter",
    "spring",
    "angel",
    "devil",
    "heaven",
    "paradise",
    "ocean",
    "sea",
    "wind",
    "storm",
    "thunder",
    "shadow",
    "mirror",
    "window",
    "door",
    "house",
    "street",
    "train",
    "highway",
    "mountain",
    "desert",
    "island",
    "flower",
    "rose",
    "garden",
    "tree",
    "bird",
    "wolf",
    "tiger",
    "horse",
    "lion",
    "king",
    "queen",
    "prince",
    "diamond",
    "silver",
    "stone",
    "glass",
    "paper",
    "machine",
    "radio",
    "music",
    "rhythm",
    "beat",
    "groove",
    "party",
    "weekend",
    "holiday",
    "christmas",
    "birthday",
    "money",
    "power",
    "freedom",
    "peace",
    "war",
    "hope",
    "faith",
    "truth",
    "lie",
    "secret",
    "promise",
    "memory",
    "story",
    "letter",
    "picture",
    "voice",
    "silence",
    "echo",
    "fever",
    "poison",
    "medicine",
    "sugar",
    "honey",
    "cherry",
    "whiskey",
    "wine",
    "coffee",
    "smoke",
    "ashes",
    "ghost",
    "stranger",
    "lover",
    "friend",
    "brother",
    "sister",
    "mother",
    "father",
    "children",
    "people",
    "nobody",
    "somebody",
    "everybody",
    "everything",
    "nothing",
    "something",
    "anywhere",
    "somewhere",
    "nowhere",
    "always",
    "never",
    "again",
    "away",
    "down",
    "up",
    "run",
    "walk",
    "fly",
    "fall",
    "rise",
    "jump",
    "breathe",
    "feel",
    "hold",
    "touch",
    "kiss",
    "cry",
    "laugh",
    "smile",
    "sleep",
    "wake",
    "wait",
    "stay",
    "leave",
    "go",
    "come",
    "back",
    "believe",
    "remember",
    "forget",
    "forgive",
    "surrender",
    "escape",
    "burn",
    "shine",
    "glow",
    "move",
    "shake",
    "turn",
    "break",
    "live",
    "die",
    "intro",
    "remix",
    "dub",
    "original",
    "feat",
    "clean",
    "extended",
]


@dataclass(frozen=True)
class Script:
    """One way of writing: its share of the artists and the parts of its words."""

    name: str
    share: float
    starts: tuple[str, ...]
    middles: tuple[str, ...]
    ends: tuple[str, ...]
    is_cased: bool = True
    is_spaced: bool = True


def _split_parts(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_HANGUL = tuple(
    chr(0xAC00 + 588 * lead + 28 * vowel + tail)
    for lead in (0, 2, 3, 5, 6, 7, 9, 11, 12, 18)
    for vowel in (0, 4, 8, 13, 20)
    for tail in (0, 4, 8)
)
_HAN = tuple(
    "愛夢夜月星花風雨雪海山空光心人天地火水木金春夏秋冬朝日青白黒赤紅紫音声歌舞恋情思忘時世界道路東西南北京城門橋川江河林森鳥龍虎馬雲雷石玉銀鏡影幻永遠希望自由平和生命青涙笑顔旅"
)

SCRIPTS = (
    Script(
        "latin",
        0.58,
        _split_parts(
            "ka mar lo ven tor sil dra el fen gar hal jo ker lun mor nor ol per quin ra sol tal vor wil zan bri cor dal fi gre bel cas del"
        ),
        _split_parts("a i o li ra ne mo ta vi ri la den ber ka so na ve ro mi de"),
        _split_parts("n r s la ra don ton ley by field wood er ine ette ia um ix ard en is o a y ness ling more"),
    ),
    Script(
        "latin_accented",
        0.22,
        _split_parts("cora ñan pé brü só jö åsa élé żel čar ška fø ão møn gül çel šir ří mañ niño cæl sér lúc dró hö tü łód où gär ős vár"),
        _split_parts("ção lü né mí rá ště ña lö ří tó çi na li re mo ta"),
        _split_parts("ção é ía ñor ström quist ová ić ów ün ası é à ón ez inho ette øy sen ská ěn ő ú"),
    ),
    Script(
        "cyrillic",
        0.06,
        _split_parts("люб ноч серд вес мос свет звез до го ми ле зи по ра со бе че но кра ду ве са"),
        _split_parts("о и а е ра ли но ви ро ка те ми"),
        _split_parts("вь ть ца на ва да ка ет ень ость ой ский ова ин ы я"),
    ),
    Script(
        "greek",
        0.02,
        _split_parts("αγά θάλ καρ νύχ φως ουρ μου ζω ερ χαρ ψυ ξέ"),
        _split_parts("α ο ι λα ρα νο μη τι"),
        _split_parts("πη σσα διά τα νός ρα μα ος ις ή ά"),
    ),
    Script(
        "kana",
        0.04,
        _split_parts("サク ハナ ユメ ヨル ホシ ソラ カゼ ひか こい なみ アイ リズ メロ"),
        _split_parts("ラ リ ル タ ノ ミ マ り の"),
        _split_parts("ー ン ラ ム ス ト り る い と"),
        is_cased=False,
        is_spaced=False,
    ),
    Script("han", 0.025, _HAN, ("",), _HAN, is_cased=False, is_spaced=False),
    Script("hangul", 0.03, _HANGUL, ("",), _HANGUL, is_cased=False),
    Script(
        "hebrew",
        0.01,
        _split_parts("אה שי לי של ים או כו מד בו נפ"),
        _split_parts("ב ר ל מ ו י"),
        _split_parts("ה ם ת ן ים ות ר"),
        is_cased=False,
    ),
    Script(
        "arabic",
        0.015,
        _split_parts("حب لي قل نو شم بح سم يا غن زه"),
        _split_parts("ا ي و ر ل م"),
        _split_parts("ب ة ر س ان ين د"),
        is_cased=False,
    ),
)
SHARES = np.array([script.share for script in SCRIPTS])


def _make_up_words(script: Script, rng: np.random.Generator, count: int) -> list[str]:
    def draw(parts: tuple[str, ...]) -> list[str]:
        return [parts[position] for position in rng.integers(0, len(parts), count)]

    longer = rng.random(count) < LONGER_WORDS
    middles = [middle if more else "" for middle, more in zip(draw(script.middles), longer, strict=True)]
    words = [start + middle + end for start, middle, end in zip(draw(script.starts), middles, draw(script.ends), strict=True)]
    second = [middle + end for middle, end in zip(draw(script.middles), draw(script.ends), strict=True)]
    long = rng.random(count) < LONGEST_WORDS
    words = [word + more if is_long else word for word, more, is_long in zip(words, second, long, strict=True)]
    return [word[:1].upper() + word[1:] for word in words] if script.is_cased else words


@lru_cache(maxsize=4)
def make_words(seed: int, use: str) -> tuple[np.ndarray[tuple[int], np.dtype[np.object_]], ...]:
    """Return distinct words for each script, most frequent first; `use` is `title` (common words first) or `name`."""
    count = TITLE_WORDS if use == "title" else NAME_WORDS
    out = []
    for script in SCRIPTS:
        # A stream for each script: another share of one script leaves the words of all others as they are.
        rng = make_generator(seed, f"words/{use}/{script.name}")
        common = [word.capitalize() for word in COMMON_WORDS] if script.name == "latin" and use == "title" else []
        # More than the script's share, because made-up words repeat; the dictionary keeps the first of each, in order.
        made_up = dict.fromkeys(common + _make_up_words(script, rng, int(count * max(0.15, script.share) * 1.5)))
        out.append(np.array(list(made_up), dtype=object))
    return tuple(out)
