"""The meaning of one segment of a title: a bracket, the text after a dash or a bracket, or a credit.

A segment is read on its own, so a build reads each distinct one once: 26,000 real titles hold 4,000 distinct segments. It is a version note
only when every word of it has a reading; otherwise it belongs to the title: `(Everything I Do)`, `(Mighty Real)`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from catalog_store.name_keys import version_words
from catalog_store.name_keys.folding import compact, extract_words, fold
from catalog_store.name_keys.part_numbers import is_numeral
from catalog_store.name_keys.spelling_correction import KNOWN_WORDS, correct_unambiguous, correct_words
from catalog_store.name_keys.version_notes import YEAR, Tags, read_version
from catalog_store.name_keys.version_words import COSMETIC, FUNCTION_WORDS

BRACKET, TAIL, DASH, CREDIT = "(", ")", "-", "f"
"""The first character of a segment. It shows how the segment was set off from the song."""

# Titles repeat their segments: 26,000 real titles hold 4,000 distinct ones. The bound keeps a long-lived server's memory constant.
CACHED_SEGMENTS = 65_536
_SOUNDTRACK = re.compile(version_words.SOUNDTRACK_PATTERN)
_FROM_SOMEWHERE = re.compile(version_words.FROM_SOMEWHERE)
_FILM = re.compile(r"from (?:the )?\"?(.*?)\"? ?(?:soundtrack|original motion picture.*)?\"?$")
_TEMPO = re.compile(version_words.TEMPO_PATTERN)
_MUSICAL_KEY = re.compile(version_words.MUSICAL_KEY_PATTERN)
_TEMPI = re.compile(r"(?<![0-9])(?:[6-9][0-9]|1[0-9][0-9])(?: ?(?:-|to) ?(?:[6-9][0-9]|1[0-9][0-9]))?(?![0-9])")
_PIECES = re.compile(r" ?[/+;] ?| & (?=acap|clean|dirty|intro|outro)| - ")
_SIZE = re.compile(r"(?<![0-9a-z])(7|10|12)(?:\"| ?-? ?in(?:ch(?:es)?)?(?![a-z]))")
_SEVEN, _TWELVE = re.compile(r"(?<![a-z])seven[ -]?inch(?![a-z])"), re.compile(r"(?<![a-z])twelve[ -]?inch(?![a-z])")
_SUFFIXED = re.compile(f"([^ -])({'|'.join(extract_words(fold(suffix)) for suffix in version_words.SUFFIXES)})(?= |$)")
_GLUED_WORD = re.compile(r"([^ -~])(ver|version|mix|remix|edit|live)(?![a-z])")
_SINGER = re.compile(r"(?:(?:cv|c\.v|vo|vocal)\.? ?:|(?:cv|c\.v|vo)\.) ?(?=[^ ])")
"""`(CV:X)`, `(CV.X)`, `(Vo. X)`: the singer behind a character or a band."""
_TAKE = re.compile(r"(?<![a-z])(?:(?:alternate|alternative|alt\.?) )?take ([0-9]{1,2})(?![0-9])")
_MARKET = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(version_words.MARKETS))})(?![a-z])")
_TRANSITION_WORDS = frozenset({"transition", "trans"})
_LIVE_COMMA = re.compile("live[,:] ")
_LIVE_AT = re.compile(r"(?<![a-z])(live|recorded)(?: from)? ?@ ?")


class Segment(NamedTuple):
    """`kept`: words that belong to the title. `tags`: kinds of variant, `kind` or `kind:name`. `credit`: guests, as words.

    `notes`: remarks that do not make another recording: `remaster:2011`, `explicit`, `bonus`, `soundtrack:rocky iv` ...
    """

    kept: str = ""
    tags: tuple[str, ...] = ()
    credit: str = ""
    notes: tuple[str, ...] = ()


@lru_cache(maxsize=CACHED_SEGMENTS)
def read_segment(segment: str) -> Segment:  # noqa: PLR0911 - one exit per meaning
    """Read one folded segment, whose first character is BRACKET, TAIL, DASH or CREDIT."""
    how, text = segment[:1], segment[1:].strip(" ")
    plain = extract_words(text)
    tokens = plain.split(" ") if plain else []
    if not tokens:
        return Segment()
    if how == CREDIT:
        return Segment(credit=plain)
    if how == TAIL:
        return _read_tail(plain, tokens)
    guests = _read_guests(text, tokens)
    if guests is not None:
        return guests
    noise = _read_noise(text, tokens, how)
    if noise is not None:
        return Segment(notes=noise)
    plain_text = _normalize_words(text)
    if plain_text != text:
        text, tokens = plain_text, extract_words(plain_text).split(" ")
    tags = _read_pieces(text, tokens)
    # Only an unknown word can be a misspelled one.
    if not KNOWN_WORDS.issuperset(tokens):
        tags = _read_corrected(tokens, tags)
    if tags is not None:
        return _build_segment(tags)
    return Segment(credit=plain) if _is_versus(tokens) else Segment(kept=plain)


def _build_segment(tags: Tags) -> Segment:
    notes = tuple(sorted({tag.removeprefix(COSMETIC) for tag in tags if tag.startswith(COSMETIC)}))
    return Segment(tags=tuple(tag for tag in tags if not tag.startswith(COSMETIC)), notes=notes)


def _read_tail(plain: str, tokens: list[str]) -> Segment:
    """Read the text after a bracket: a stamp, a plain note, or more of the title."""
    if all(_is_stamp_word(token) or (len(word) == 1 and word.isdigit()) for token, word in zip(tokens, plain.split(" "), strict=True)):
        return Segment()
    tags = read_version(tokens, is_set_off=False)
    return Segment(kept=plain) if tags is None else _build_segment(tags)


def _read_guests(text: str, tokens: list[str]) -> Segment | None:  # noqa: PLR0911 - a list of rules
    """Read guests from `feat. X`, `with X`, `con X`; None when the segment names none."""
    if text.startswith("& ") and len(tokens) > 1:
        return Segment(credit=" ".join(tokens[1:]))
    if singer := _SINGER.match(text):
        return Segment(credit=extract_words(text[singer.end() :]))
    if tokens[0] not in version_words.CREDIT_WORDS and tokens[0] not in {"a", "in", "en", "duo"}:
        return None
    plain = " ".join(tokens)
    lead = next((phrase for phrase in version_words.CREDIT_PHRASES if plain.startswith(f"{phrase} ")), None)
    if lead is None:
        return None
    rest = tokens[lead.count(" ") + 1 :]
    # `w` is `with` only as `w/`. `part` names guests only as `part.`, as Portuguese titles do; `Part II` is a number.
    if (lead == "w" and not text.startswith("w/")) or (lead == "part" and (not text.startswith("part. ") or is_numeral(rest[0]))):
        return None
    if lead in {"with", "w", "con", "avec", "mit"}:
        # `With Strings` is another version of the song, not a guest.
        if version_words.NOT_A_MUSICIAN.issuperset(rest):
            return Segment(tags=(f"version:{compact(' '.join(rest))}",))
        if rest[0] in version_words.NOT_A_GUEST:
            return None
    return Segment(credit=" ".join(rest))


def _is_versus(tokens: list[str]) -> bool:
    """Return whether the words oppose artists: `Avicii vs. Nicky Romero`, `Deorro x Chris Brown`.

    An x before a function word is part of a name.
    """
    if "vs" in tokens[1:-1]:
        return True
    return any(
        word == "x" and tokens[place + 2] not in FUNCTION_WORDS and not tokens[place].isdigit() for place, word in enumerate(tokens[1:-1])
    )


def _read_noise(text: str, tokens: list[str], how: str) -> tuple[str, ...] | None:
    """Read a producer, the film of a song, or a stamp, which are neither title nor variant; None when it is none of these."""
    if tokens[0] in version_words.PRODUCER_WORDS and len(tokens) > 1:
        return ("produced",)
    from_somewhere = tokens[0] == "from" and (
        how == DASH or (len(tokens) > 1 and bool(_FROM_SOMEWHERE.match(text)) and version_words.FROM_LYRICS.isdisjoint(tokens))
    )
    if from_somewhere or (not version_words.SOURCE_WORDS.isdisjoint(tokens) and _SOUNDTRACK.search(text)):
        pieces = _PIECES.split(text)
        others = [read_version(extract_words(piece).split(" "), is_set_off=True) for piece in pieces if not _SOUNDTRACK.search(piece)]
        if any(tag for tags in others if tags for tag in tags if not tag.startswith(COSMETIC)):
            return None
        film = _FILM.search(pieces[0])
        return (f"soundtrack:{extract_words(film[1])}" if film and extract_words(film[1]) else "soundtrack",)
    is_stamp = 1 < len(tokens) <= version_words.LONGEST_STAMP and all(map(_is_stamp_word, tokens)) and any(map(_TEMPO.match, tokens))
    return () if is_stamp else None


def _is_stamp_word(word: str) -> bool:
    """Return whether a word is a key or a tempo, as DJ pools stamp them."""
    return bool(_TEMPO.match(word) or _MUSICAL_KEY.match(word) or word == "bpm")


def _normalize_words(text: str) -> str:
    """Rewrite sizes, suffixes without space, tempi of transitions and `@` as words of `version_words`."""
    if "@" in text:
        text = _LIVE_AT.sub(r"\1 at ", text)
    if "in" in text or '"' in text:
        text = _SIZE.sub(r"\1inch", _TWELVE.sub("12inch", _SEVEN.sub("7inch", text)))
    if "bonus" in text:
        text = _MARKET.sub(" ", text)
    if "take" in text:
        text = _TAKE.sub(r"numberedtake \1", text)
    if not text.isascii():
        text = _GLUED_WORD.sub(r"\1 \2", _SUFFIXED.sub(r"\1 \2", text))
    return _TEMPI.sub(" ", text) if "trans" in text and not _TRANSITION_WORDS.isdisjoint(extract_words(text).split(" ")) else text


def _read_pieces(text: str, tokens: list[str]) -> Tags | None:
    """Read notes side by side (`Re-Recorded / Remastered`) if each is readable; otherwise read the whole as one note."""
    # `AC/DC Remix` shows that a slash may be part of a name, so pieces count only if every one of them has a reading.
    pieces = _join_years([piece for piece in _PIECES.split(text) if extract_words(piece)])
    if len(pieces) > 1:
        read = [_read_piece(piece) for piece in pieces]
        known = [tags for tags in read if tags is not None]
        if len(known) == len(read):
            return tuple(sorted({tag for tags in known for tag in tags}))
    tags = read_version(tokens, is_set_off=True)
    # `Live, Budokan` is `Live at Budokan` with a comma.
    return read_version(["live", "at", *tokens[1:]], is_set_off=True) if tags is None and _LIVE_COMMA.match(text) else tags


def _join_years(pieces: list[str]) -> list[str]:
    """Return the pieces, each year joined to the piece before it: `Take 1 / Live at the Village Vanguard / 1961`."""
    joined = pieces[:1]
    for piece in pieces[1:]:
        if YEAR.match(piece.strip()):
            joined[-1] += f" {piece.strip()}"
        else:
            joined.append(piece)
    return joined


def _read_piece(piece: str) -> Tags | None:
    tokens = extract_words(piece).split(" ")
    if _SOUNDTRACK.search(piece):
        return ("=soundtrack",)
    if tokens[0] in {"with", "w"} and version_words.NOT_A_MUSICIAN.issuperset(tokens[1:]):
        return (f"version:{compact(' '.join(tokens[1:]))}",)
    return read_version(tokens, is_set_off=True)


def _read_corrected(tokens: list[str], tags: Tags | None) -> Tags | None:
    """Read a segment again with corrected version words, if it had no reading before or the correction is unambiguous."""
    corrected = correct_words(tokens) if tags is None else correct_unambiguous(tokens)
    return tags if corrected == tokens else read_version(corrected, is_set_off=True)
