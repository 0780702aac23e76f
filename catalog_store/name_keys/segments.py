"""One segment of a title (a bracket, what follows a dash, what follows a bracket, a credit) -> what it says.

A segment is read on its own, so that a build reads each distinct one once: 26,000 real titles hold 4,000 distinct segments. It is a version
note only when every word of it is accounted for; otherwise it belongs to the title: `(Everything I Do)`, `(Mighty Real)`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

from catalog_store.name_keys import vocabulary
from catalog_store.name_keys.folding import compact, words
from catalog_store.name_keys.vocabulary import COSMETIC, FOLLOWED_PHRASES, PHRASES

BRACKET, TAIL, DASH, CREDIT = "(", ")", "-", "f"
"""First character of a segment: how it was set off."""

CACHED_SEGMENTS = 65_536
SHORTEST_MENDED, SHORTEST_MENDED_ALONE, SHORTEST_MENDED_SINGLE = 3, 4, 6
"""Letters of a misspelt word: three-letter ones only with letters swapped; without a good version word beside it five; by itself six."""
_LONGEST_PHRASE = max(len(phrase.split()) for phrase in (*PHRASES, *FOLLOWED_PHRASES))
_VERSION_WORDS = frozenset(word for phrase in PHRASES for word in phrase.split()) | vocabulary.REMASTER_WORDS
_SOUNDTRACK = re.compile(vocabulary.SOUNDTRACK_PATTERN)
_TEMPO = re.compile(vocabulary.TEMPO_PATTERN)
_MUSICAL_KEY = re.compile(vocabulary.MUSICAL_KEY_PATTERN)
_YEAR = re.compile(r"^(?:19|20)[0-9][0-9]$")
_ORDINAL = re.compile(r"^[0-9]{1,3}(?:st|nd|rd|th)$")
_PIECES = re.compile(r" ?[/+;] ?| & (?=acap|clean|dirty|intro|outro)")


class Segment(NamedTuple):
    """`kept`: words that belong to the title. `tags`: kinds of variant, `kind` or `kind:name`. `credit`: guests, as words."""

    kept: str = ""
    tags: tuple[str, ...] = ()
    credit: str = ""


@lru_cache(maxsize=CACHED_SEGMENTS)
def read_segment(segment: str) -> Segment:  # noqa: PLR0911 - one exit per meaning
    """Read one folded segment, its first character one of BRACKET, TAIL, DASH, CREDIT."""
    how, text = segment[:1], segment[1:].strip(" ")
    plain = words(text)
    tokens = plain.split(" ") if plain else []
    if not tokens:
        return Segment()
    if how == CREDIT:
        return Segment(credit=plain)
    if how != TAIL and len(tokens) > 1 and tokens[0] in vocabulary.CREDIT_WORDS and tokens[1] not in vocabulary.NOT_A_GUEST:
        return Segment(credit=" ".join(tokens[1:]))
    if _is_noise(text, tokens, how):
        return Segment()
    tags = _read_pieces(text, tokens, how)
    if how != TAIL and not _VERSION_WORDS.issuperset(tokens):
        tags = _read_mended(tokens, how, tags)
    if tags is not None:
        return Segment(tags=tags)
    if how != TAIL and "vs" in tokens[1:-1]:
        return Segment(credit=plain)
    return Segment(kept=plain)


def _is_noise(text: str, tokens: list[str], how: str) -> bool:
    """A producer, the film a song is from, or a stamp: neither title nor variant."""
    if how != TAIL and tokens[0] in vocabulary.PRODUCER_WORDS and len(tokens) > 1:
        return True
    from_film = bool(_SOUNDTRACK.search(text)) or (how == DASH and tokens[0] == "from")
    return (how != TAIL and from_film) or _is_stamp(tokens, how)


def _read_mended(tokens: list[str], how: str, tags: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """`tags`, or what the segment says once misspelt version words are set right (`Extendde Mix`, `Radio Edti`, `Tiësto Remx`).

    One letter is little evidence. Short words are mended only beside a well-spelt version word and where the segment made no sense before;
    `(Alive)` and `Alive Remix` stay what they are.
    """
    alone = _VERSION_WORDS.isdisjoint(tokens)
    mended = [_mended(token, alone=alone, single=len(tokens) == 1) for token in tokens]
    if mended == tokens:
        return tags
    if tags is None:
        return _read_version(mended, how)
    changed = [token for token, right in zip(tokens, mended, strict=True) if token != right]
    if _VERSION_WORDS.issuperset(mended) and min(map(len, changed)) >= SHORTEST_MENDED_SINGLE:
        return _read_version(mended, how)
    return tags


def _mended(token: str, *, alone: bool, single: bool) -> str:
    if token in _VERSION_WORDS or len(token) < (SHORTEST_MENDED_SINGLE if single else SHORTEST_MENDED):
        return token
    for word in vocabulary.MENDED:
        if abs(len(word) - len(token)) > 1 or (alone and len(word) <= SHORTEST_MENDED_ALONE):
            continue
        if len(token) == SHORTEST_MENDED or len(word) == SHORTEST_MENDED:
            if sorted(token) == sorted(word):
                return word
        elif (word[0] == token[0] or word[-1] == token[-1]) and OSA.distance(word, token, score_cutoff=1) <= 1:
            return word
    return token


def _is_stamp(tokens: list[str], how: str) -> bool:
    """Key and tempo as DJ pools stamp them; a bare number only behind a bracket (`) 136`, `) 2.2`)."""
    stamps = [bool(_TEMPO.match(word) or _MUSICAL_KEY.match(word) or word == "bpm") for word in tokens]
    if how == TAIL:
        return all(stamp or (len(token) == 1 and token.isdigit()) for stamp, token in zip(stamps, tokens, strict=True))
    return len(tokens) > 1 and all(stamps) and any(_TEMPO.match(token) for token in tokens)


def _read_pieces(text: str, tokens: list[str], how: str) -> tuple[str, ...] | None:
    """Notes side by side (`Re-Recorded / Remastered`), each readable by itself; else the whole as one note (`AC/DC Remix`)."""
    pieces = [piece for piece in _PIECES.split(text) if words(piece)]
    if len(pieces) > 1:
        read = [() if _SOUNDTRACK.search(piece) else _read_version(words(piece).split(" "), how) for piece in pieces]
        known = [tags for tags in read if tags is not None]
        if len(known) == len(read):
            return tuple(sorted({tag for tags in known for tag in tags}))
    return _read_version(tokens, how)


def _read_version(tokens: list[str], how: str) -> tuple[str, ...] | None:
    """Tags of a version note; an empty tuple for a cosmetic one; None when some word does not fit."""
    if not vocabulary.REMASTER_WORDS.isdisjoint(tokens) and how != TAIL:
        return _read_version([t for t in tokens if t in {"live", "mono", "stereo", "instrumental", "acoustic"}], how) or ()
    phrases: list[str] = []
    name: list[str] = []
    loose: list[str] = []
    years: list[str] = []
    index = 0
    while index < len(tokens):
        phrase, length = _phrase_at(tokens, index, FOLLOWED_PHRASES)
        if phrase and how != TAIL and index + length < len(tokens):
            kind = FOLLOWED_PHRASES[phrase]
            rest = [token for token in tokens[index + length :] if token not in {"the", "and"}]
            return _tags([*phrases, kind], rest if kind != "karaoke" else [])
        phrase, length = _phrase_at(tokens, index, PHRASES)
        if phrase:
            phrases.append(PHRASES[phrase])
            name += loose
            loose = []
        elif _YEAR.match(tokens[index]):
            years.append(tokens[index])
        elif not _ORDINAL.match(tokens[index]):
            loose.append(tokens[index])
        index += max(length, 1)
    if not phrases:
        return None
    return _with_loose_words(tokens, phrases, name, loose, years, how)


def _phrase_at(tokens: list[str], index: int, table: dict[str, str]) -> tuple[str, int]:
    for length in range(min(_LONGEST_PHRASE, len(tokens) - index), 0, -1):
        phrase = " ".join(tokens[index : index + length])
        if phrase in table:
            return phrase, length
    return "", 0


def _with_loose_words(  # noqa: PLR0911 - a list of rules
    tokens: list[str], phrases: list[str], name: list[str], loose: list[str], years: list[str], how: str
) -> tuple[str, ...] | None:
    """Decide over the words that are no phrase: the name before a version word, a number behind it, or the end of the reading."""
    if loose and not all(token.isdigit() for token in loose):
        return None
    if how == TAIL and (name or loose or " ".join(tokens) in vocabulary.TAIL_AMBIGUOUS):
        return None
    takes_name = [kind for kind in phrases if kind in vocabulary.NAMED_KINDS | vocabulary.REMIX_ASPECTS | vocabulary.PLACED_KINDS]
    if name and set(name) <= vocabulary.NOT_A_NAME:
        return None
    if name and not takes_name:
        return _tags(["version"], name) if tokens[-1] in {"mix", "version"} else None
    if not name and phrases[-1] in {"mix", "cut", "session"} and not years:
        return None if len(phrases) == 1 else _tags(phrases[:-1], loose)
    if not name and years and phrases[-1] in vocabulary.NAMED_KINDS | {"live"}:
        name = years
    if not name and phrases == ["version"] and len(tokens) == 1:
        return None
    return _tags(phrases, [token for token in name if token not in {"the", "and", "x", "vs", "s"}] + loose)


def _tags(phrases: list[str], name: list[str]) -> tuple[str, ...]:
    kinds = [kind for kind in phrases if kind != COSMETIC]
    who = compact(" ".join(name))
    if not who:
        return tuple(sorted({("remix" if kind == "mix" else kind) for kind in kinds if kind not in {"version", "session"}}))
    tags = set()
    named = [kind for kind in kinds if kind in vocabulary.NAMED_KINDS]
    placed = [kind for kind in kinds if kind in vocabulary.PLACED_KINDS]
    for kind in kinds:
        if kind in vocabulary.PLACED_KINDS:
            tags.add(f"{kind}:{who}")
        elif kind not in vocabulary.NAMED_KINDS:
            tags.add(kind)
    if named and not placed:
        tags |= {f"{'remix' if kind == 'mix' else kind}:{who}" for kind in named[-1:]}
    elif not placed and any(kind in vocabulary.REMIX_ASPECTS for kind in kinds):
        tags.add(f"remix:{who}")
    return tuple(sorted(tags))
