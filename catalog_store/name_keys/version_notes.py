"""The tags of a version note: `tiesto extended remix` -> extended, remix:tiesto; `2011 remaster` -> the note =remaster:2011.

A note is read from left to right in phrases of `version_words`. Other words are a name before a version word, or a place after one. If
they are neither, the text is not a version note and the result is None. The words themselves belong in `version_words`, brackets in
`segments`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from catalog_store.name_keys import version_words
from catalog_store.name_keys.folding import compact
from catalog_store.name_keys.version_words import (
    COSMETIC,
    FOLLOWED_PHRASES,
    FUNCTION_WORDS,
    NAMED_KINDS,
    PHRASES,
    PLACED_KINDS,
    REMIX_ASPECTS,
)

Tags = tuple[str, ...]
"""Kinds of variant, `kind` or `kind:name`, and notes, which begin with COSMETIC; empty: cosmetic without a name."""

LONGEST_NAME_BEHIND = 4
"""The most words after `Version` or `Remix` that count as its name."""
YEAR = re.compile(r"^(?:19|20)[0-9][0-9]$")
_ORDINAL = re.compile(r"^[0-9]{1,3}(?:st|nd|rd|th)$")
_DATED = re.compile(r"^(?:[0-9]{2}|[0-9]{4})$")
_LENGTHS: dict[str, tuple[int, ...]] = {}
for _phrase in (*PHRASES, *FOLLOWED_PHRASES):
    _first, _length = _phrase.split()[0], len(_phrase.split())
    _LENGTHS[_first] = tuple(sorted({_length, *_LENGTHS.get(_first, ())}, reverse=True))
"""Lengths in words of the phrases that begin with a word, the longest first. Most words begin none."""
_TAKES_NAME = NAMED_KINDS | REMIX_ASPECTS | PLACED_KINDS
_JOINING_WORDS = frozenset({"the", "and", "x", "vs"})
_ASPECTS_OF_REMASTERS = frozenset({"live", "mono", "stereo", "instrumental", "acoustic", "remix", "dub", "acapella"})


class _NoteWords(NamedTuple):
    """The words of a note by role: kinds in order, the name before them, words after the last kind, years."""

    kinds: list[str]
    name: list[str]
    loose: list[str]
    years: list[str]


def read_version(tokens: list[str], *, is_set_off: bool) -> Tags | None:
    """Read the tags of a version note; None when some word does not fit.

    `is_set_off`: the note is in brackets or after a dash. A note that only follows a bracket must be plainer.
    """
    if not version_words.REMASTER_WORDS.isdisjoint(tokens):
        return _read_remaster(tokens, is_set_off=is_set_off)
    if alone := version_words.WHOLE_NOTES.get(" ".join(tokens)):
        return (alone,)
    words = _NoteWords([], [], [], [])
    index = 0
    while index < len(tokens):
        phrase, length = _find_phrase(tokens, index, FOLLOWED_PHRASES)
        behind = index + length
        is_tied = phrase not in version_words.WITHOUT_PREPOSITION or not any(
            _find_phrase(tokens, place, PHRASES)[0] for place in range(behind, len(tokens))
        )
        if phrase and is_tied and is_set_off and behind < len(tokens):
            tags = _read_followed(words, FOLLOWED_PHRASES[phrase], tokens[behind:])
            if tags is not None:
                return tags
        phrase, length = _find_phrase(tokens, index, PHRASES)
        if phrase:
            words.kinds.append(PHRASES[phrase])
            # Words before a kind are its name. Only words after the last kind stay loose.
            words.name.extend(words.loose)
            words.loose.clear()
        elif YEAR.match(tokens[index]):
            words.years.append(tokens[index])
        # The ordinal of `40th Anniversary Version` belongs to a cosmetic phrase and names nothing.
        elif not (_ORDINAL.match(tokens[index]) and PHRASES.get(_find_phrase(tokens, index + 1, PHRASES)[0], "").startswith(COSMETIC)):
            words.loose.append(tokens[index])
        index += max(length, 1)
    if not words.kinds:
        return None
    return _decide_note(tokens, words, is_set_off=is_set_off)


def _find_phrase(tokens: list[str], index: int, table: dict[str, str]) -> tuple[str, int]:
    """Return the longest phrase of the table that begins at this word, and its number of words; or ("", 0)."""
    for length in _LENGTHS.get(tokens[index], ()) if index < len(tokens) else ():
        phrase = " ".join(tokens[index : index + length])
        if phrase in table and index + length <= len(tokens):
            return phrase, length
    return "", 0


def _read_remaster(tokens: list[str], *, is_set_off: bool) -> Tags | None:
    """Read a remaster, and the rest of the note if it is readable."""
    years = [token for token in tokens if YEAR.match(token)]
    rest = [
        token for token in tokens if not (YEAR.match(token) or token in version_words.REMASTER_WORDS or token in version_words.REMASTERING)
    ]
    if rest and not is_set_off:
        return None
    note = f"{COSMETIC}remaster:{years[-1]}" if years else f"{COSMETIC}remaster"
    rest_tags = read_version(rest, is_set_off=is_set_off) if rest else ()
    # The rest has no reading as a whole. Only its words that surely name another recording count.
    if rest_tags is None:
        rest_tags = tuple(token for token in rest if token in _ASPECTS_OF_REMASTERS and token in PHRASES)
    return tuple(sorted({note, *(tag for tag in rest_tags if not tag.startswith("version:"))}))


def _read_followed(words: _NoteWords, kind: str, rest: list[str]) -> Tags | None:
    """Read `Live at X`, `Remix by X`; None where the words continue as lyrics: `(Live in the Moment)`."""
    before = [*words.name, *words.loose]
    if kind == "karaoke":
        return build_tags([*words.kinds, kind], [])
    if not FUNCTION_WORDS.isdisjoint(before) or (kind == "live" and not _is_place(rest)):
        return None
    if kind == "live" and "unplugged" in rest:
        # One event has one variant: `MTV Unplugged` and `Live at MTV Unplugged` are the same.
        kind, rest = "unplugged", [word for word in rest if word != "unplugged"]
    named = [kind_ for kind_ in words.kinds if kind_ in NAMED_KINDS and kind_ != kind]
    return build_tags(
        [*(kind_ for kind_ in words.kinds if kind_ not in named), kind], [token for token in rest if token not in {"the", "and"}]
    )


def _is_place(rest: list[str]) -> bool:
    first = rest[1] if rest[0] in {"the", "a"} and len(rest) > 1 else rest[0]
    return first not in version_words.NOT_A_PLACE


def _decide_note(tokens: list[str], words: _NoteWords, *, is_set_off: bool) -> Tags | None:  # noqa: PLR0911 - a list of rules
    """Decide about the words outside phrases, after all words are read."""
    kinds, name, loose, years = words
    if "karaoke" in kinds and is_set_off and FUNCTION_WORDS.isdisjoint({*name, *loose} - version_words.KARAOKE_WORDS):
        return build_tags(kinds, [])
    if not is_set_off and (name or loose or " ".join(tokens) in version_words.TAIL_AMBIGUOUS):
        is_sure = kinds == ["remix"] and not loose and bool(name) and FUNCTION_WORDS.isdisjoint(name)
        return build_tags(kinds, _strip_joining_words(name)) if is_sure else None
    if loose and not all(token.isdigit() for token in loose):
        return _read_words_behind(tokens, words)
    if name and (set(name) <= version_words.NOT_A_NAME or tokens[-3:-1] == ["in", "the"]):
        return None
    takes_name = [kind for kind in kinds if kind in _TAKES_NAME]
    if name and not takes_name:
        return build_tags([*kinds, tokens[-1]], _strip_joining_words(name)) if tokens[-1] in {"mix", "version"} else None
    if name and any(kind in PLACED_KINDS for kind in kinds) and not FUNCTION_WORDS.isdisjoint(name[name[0] == "the" :]):
        return None
    # `The X Club` names a place and not a club mix.
    if name and kinds == ["club"] and tokens[0] == "the":
        return None
    if not name and not years and (alone := _read_nameless(tokens, kinds, loose)) is not True:
        return alone or None
    if not name and years and kinds[-1] in NAMED_KINDS | {"live"}:
        name = years
    return build_tags(kinds, _strip_joining_words(name) + loose)


def _strip_joining_words(name: list[str]) -> list[str]:
    """Remove the words that join or lead names."""
    return [token for token in name if token not in _JOINING_WORDS]


def _read_nameless(tokens: list[str], kinds: list[str], loose: list[str]) -> Tags | bool:
    """Return True when the kinds need no name; else their tags, or False for no reading: `(The Mix)`, `(Version)`."""
    if kinds[-1] in {"mix", "session"}:
        return build_tags(kinds[:-1], loose) if len(kinds) > 1 else False
    return not (kinds == ["version"] and len(tokens) == 1)


def _read_words_behind(tokens: list[str], words: _NoteWords) -> Tags | None:
    """Read a name after the kind: `Versión Salsa`, `Remix Brega Funk`, `Live Montreal '87`."""
    behind = words.loose
    if words.name or not FUNCTION_WORDS.isdisjoint(behind):
        return None
    if tokens[0] in version_words.TAKES_WORDS_BEHIND and len(behind) <= LONGEST_NAME_BEHIND:
        return build_tags(words.kinds, behind)
    is_dated = bool(words.years) or not version_words.MONTHS.isdisjoint(behind) or any(_DATED.match(token) for token in behind)
    if words.kinds[-1] == "live" and tokens[0] == "live" and is_dated and version_words.NOT_A_PLACE.isdisjoint(behind[:1]):
        return build_tags(words.kinds, [*behind, *words.years])
    return None


def _name_language(name: list[str]) -> str | None:
    words = [word for word in name if word not in version_words.LANGUAGE_JOINTS]
    return version_words.LANGUAGES.get(words[0]) if len(words) == 1 else None


def build_tags(kinds: list[str], name: list[str]) -> Tags:
    """Build the tags of some kinds with one name for them; sorted, distinct."""
    notes = {kind for kind in kinds if kind.startswith(COSMETIC) and kind != COSMETIC}
    kinds = [kind for kind in kinds if not kind.startswith(COSMETIC)]
    if len(kinds) > 1 and kinds[-1] not in version_words.SIZES and {"dub", "instrumental", "acapella"} & set(kinds):
        kinds = [kind for kind in kinds if kind not in version_words.SIZES] if not name else kinds
    who = compact(" ".join(name))
    if not who:
        return tuple(sorted(notes | {"remix" if kind == "mix" else kind for kind in kinds if kind not in {"version", "session"}}))
    tags = {kind for kind in kinds if kind not in NAMED_KINDS | PLACED_KINDS}
    placed = [kind for kind in kinds if kind in PLACED_KINDS]
    named = [kind for kind in kinds if kind in NAMED_KINDS]
    if placed:
        tags |= {f"{kind}:{who}" for kind in placed}
    elif named:
        who = _name_language(name) or who if named[-1] == "version" else who
        tags.add(f"{'remix' if named[-1] == 'mix' else named[-1]}:{who}")
    elif kinds and who.isdigit():
        tags = {*(kind for kind in tags if kind != kinds[-1]), f"{kinds[-1]}:{who}"}
    elif any(kind in REMIX_ASPECTS for kind in kinds):
        tags.add(f"remix:{who}")
    return tuple(sorted(notes | tags))
