"""Rewrites of folded titles that the title grammar would misread. They are few, so each is rewritten on its own.

`(A (B) C)`, `(Sell - Out Version)` -> brackets side by side; `f**k` -> `fuck`; `a / b (medley)` -> `a / b`; `- live - may 1978` -> `- live
may 1978`; `feat.x` -> `feat. x`; `(livever.)` -> `(live ver.)`; `title~subtitle~` -> `title (subtitle)`. Columns test `MAY_NEED_REPAIR`
first: every title that `repair_title` changes must match it. The meaning of a note belongs in segments.py.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from catalog_store.name_keys.folding import extract_words
from catalog_store.name_keys.segments import BRACKET, DASH, Segment, read_segment
from catalog_store.name_keys.version_notes import YEAR
from catalog_store.name_keys.version_words import ENDS_IN_VER, FUNCTION_WORDS, MONTHS

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENING, CLOSING = r"(\[{\u3010\u3014\u3016\u3018", r")\]}\u3011\u3015\u3017\u3019"
"""Brackets of western and eastern scripts, as the inside of a character class."""
_STARS = r"[a-z][*#@]|sh-t|f-ck"

_COPY = rf"[{CLOSING}] *[{OPENING}][0-9][{CLOSING}] *$"
"""`(Clean) (1)`: the second copy of a file. `(1)` alone is part of the title."""

_GROUPED = rf"[{OPENING}][^{CLOSING}]*(?: [-~]+ |[{OPENING}])"
_DATED = rf" [-~]+ .* [-~]+ [^{OPENING}{CLOSING}]*[0-9]{{2}}(?: *$| *[{OPENING}]| [-~]+ )"
"""`- Live at Kask Hall - April 1978`: possibly a date after a second dash."""
_FEET = (
    r"([0-9]|(?:^| )(?:six|ten|twenty|fifty)) ft\.? (under|below|above|over|tall|high|deep|down|wide|long|away|from|of|queenie)"
    r"|([a-z]) feat of "
)
"""`6 Ft. Under`, `Amazing Feat of Love`: feet and deeds, not guests."""
_ACCIDENTAL = r"(?:^|[^a-z])[a-g](?:[\u266d\u266f]|# (?:m|dur))"
"""`E♭ Major`, `C# Minor`. Without this rule, dropping the signs would give E major and C minor."""
_TRAILING_THE = rf"^([^{OPENING}{CLOSING}]*[^ ,]), the( *$| *[{OPENING}]| [-~]+ )"
"""`Sound of Silence, The (Live)`, as in lists sorted by title."""
_GLUED_GUEST = rf"((?:[ {OPENING}-]feat|[ {OPENING}]ft)\.)([^ ])"
"""`Song feat.Someone`: Japanese credits leave the space out."""
_FORTS = frozenset({"worth", "wayne", "lauderdale", "myers", "collins", "smith", "knox", "pierce", "bragg", "hood"})
"""`Live at Ft.Worth` names a place."""
_JOINED_GUEST = r"([^ -~])((?:feat|ft)\. ?)"
"""`曲feat.X`: no word of another script ends in `feat.`."""
_GLUED_VERSION = rf"([a-z]{{2,}})ver\.( *[{CLOSING}~-])"
"""`(TwinVer.)`, `(LiveVer.)`; not `(Forever.)`."""
_BEHIND = rf"( *$| *[{OPENING}])"
_WAVED, _DASHED = rf" ?~ ?([^ ~][^~]*?) ?~{_BEHIND}", rf"([^-])-([^ -][^-]*)-{_BEHIND}"
"""`Title ~Subtitle~`, `Title -TV size-`: two dashes set a subtitle or a version off, as brackets do."""
_UNSPACED = f"{_GLUED_GUEST}|{_JOINED_GUEST}|{_GLUED_VERSION}|{_WAVED}|{_DASHED}"
MAY_NEED_REPAIR = f"{_UNSPACED}|{_STARS}|{_COPY}|{_GROUPED}|{_DATED}|{_FEET}|{_ACCIDENTAL}|{_TRAILING_THE}|medley"
ENTITY = r"&(?:#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5}|[a-zA-Z]{2,8});"
"""`&#252;`, `&amp;`: HTML entities left in titles that were copied from web pages."""

_CENSORED = (
    (r"f[u*#@-][c*#@-](?:k|\*)", "fuck"),
    (r"s[h*][i*#@-][t*]", "shit"),
    (r"b[i*#@][t*][c*][h*]", "bitch"),
    (r"n[i*#@][g*][g*][a*]", "nigga"),
    (r"p[u*#@][s*][s*]y", "pussy"),
    (r"d[i*#@]ck", "dick"),
    (r"(^|[^a-z])a[s*#@][s*](?=$|[^a-z*])", r"\1ass"),
)
_CENSORED_RE = tuple((re.compile(pattern), word) for pattern, word in _CENSORED)
_STARS_RE, _ENTITY_RE = re.compile(_STARS), re.compile(ENTITY)
_COPY_RE = re.compile(_COPY)
_GROUPED_RE = re.compile(_GROUPED)
_DATED_RE, _DATE_WORD = re.compile(_DATED), re.compile(r"[0-9]{1,4}|[0-9]{1,2}(?:st|nd|rd|th)")
_BRACKET_RE = re.compile(f"[{OPENING}{CLOSING}]")
_OPENING_RE, _CLOSING_RE = re.compile(f"[{OPENING}]"), re.compile(f"[{CLOSING}]")
_INNER_DASH = re.compile(r" [-~]+ ")
_MEDLEY_RE = re.compile(r"^medley ?[:-] ?| ?[(\[]medley[)\]]| - medley(?: /(?= )|$)")
_QUALIFIER_RE = re.compile(r"^ *(?:[a-z]{2,3}|[0-9]{1,3}) *$")
_FEET_RE, _ACCIDENTAL_RE, _TRAILING_THE_RE = re.compile(_FEET), re.compile(_ACCIDENTAL), re.compile(_TRAILING_THE)
_GLUED_GUEST_RE, _JOINED_GUEST_RE, _GLUED_VERSION_RE = re.compile(_GLUED_GUEST), re.compile(_JOINED_GUEST), re.compile(_GLUED_VERSION)
_WAVED_RE, _DASHED_RE = re.compile(_WAVED), re.compile(_DASHED)
_MAY_NEED_REPAIR_RE = re.compile(MAY_NEED_REPAIR)


def decode_entities(title: str) -> str:
    """Replace `&amp;`, `&#252;` and other entities by their characters."""
    return html.unescape(title) if "&" in title and _ENTITY_RE.search(title) else title


def repair_title(folded: str) -> str:
    """Rewrite a folded title for the title grammar; most titles are returned unchanged."""
    if not _MAY_NEED_REPAIR_RE.search(folded):
        return folded
    if _STARS_RE.search(folded):
        for pattern, word in _CENSORED_RE:
            folded = pattern.sub(word, folded)
    folded = _JOINED_GUEST_RE.sub(r"\1 \2", folded)
    folded = _GLUED_GUEST_RE.sub(_space_guest, folded)
    folded = _GLUED_VERSION_RE.sub(_space_version, folded)
    folded = _DASHED_RE.sub(_bracket_dashed, _WAVED_RE.sub(r" (\1)\2", folded))
    folded = _FEET_RE.sub(_spell_feet, folded)
    folded = _ACCIDENTAL_RE.sub(_spell_accidental, folded)
    folded = _TRAILING_THE_RE.sub(r"the \1\2", folded)
    folded = _COPY_RE.sub(")", folded)
    if "/" in folded and "medley" in folded:
        folded = _MEDLEY_RE.sub(_remove_medley, folded).strip(" ") or folded
    if _GROUPED_RE.search(folded):
        folded = "".join(_regroup_brackets(folded))
    if _DATED_RE.search(folded):
        folded = _attach_dates(folded)
    return folded


def _space_guest(match: re.Match[str]) -> str:
    place = re.match("[a-z]*", match.string[match.end(1) :])
    return match[0] if place and place[0] in _FORTS else f"{match[1]} {match[2]}"


def _space_version(match: re.Match[str]) -> str:
    return match[0] if f"{match[1]}ver" in ENDS_IN_VER else f"{match[1]} ver.{match[2]}"


def _bracket_dashed(match: re.Match[str]) -> str:
    # `Spider-Man-`: after a Latin letter the first dash is a hyphen, unless a version follows.
    is_set_off = match[1] == " " or not match[1].isascii() or _is_note(match[2])
    return f"{match[1]} ({match[2]}){match[3]}" if is_set_off else match[0]


def _spell_feet(match: re.Match[str]) -> str:
    return f"{match[1]} feet {match[2]}" if match[1] else f"{match[3]} feat-of "


def _spell_accidental(match: re.Match[str]) -> str:
    return match[0].replace("\u266d", " flat ").replace("\u266f", " sharp ").replace("#", " sharp")


def _attach_dates(folded: str) -> str:
    """Attach each date after a dash to the version note before it: together they are one note, as in brackets."""
    joined, *rest = _INNER_DASH.split(folded)
    note = ""
    for piece in rest:
        # `note` is the version note that the pieces before form, empty when they form none.
        date = _BRACKET_RE.split(piece, maxsplit=1)[0]
        # A piece that has a reading of its own stays a segment.
        is_drawn = (
            note != "" and _is_date(extract_words(date).split(" ")) and read_segment(f"{DASH}{date}").kept and _is_note(f"{note} {date}")
        )
        joined = f"{joined} {piece}" if is_drawn else f"{joined} - {piece}"
        whole = f"{note} {piece}" if is_drawn else piece
        note = whole if _is_note(whole) and not _BRACKET_RE.search(whole) else ""
    return joined


def _is_note(text: str) -> bool:
    meaning = read_segment(f"{DASH}{text}")
    return meaning != Segment() and not meaning.kept and not meaning.credit


def _is_date(tokens: list[str]) -> bool:
    """Return whether these words are a date: `april 1978`, `15 09 19`, `1978`, or a place before a year.

    A line of lyrics (`summer of 1969`) is not a date.
    """
    if all(token in MONTHS or _DATE_WORD.fullmatch(token) for token in tokens):
        return any(token in MONTHS or YEAR.match(token) for token in tokens) or len(tokens) == len(("day", "month", "year"))
    return bool(YEAR.match(tokens[-1])) and FUNCTION_WORDS.isdisjoint(tokens)


def _regroup_brackets(folded: str) -> Iterator[str]:
    """Yield the title with its brackets regrouped, and the text between them unchanged."""
    for depth, text in _split_by_depth(folded):
        yield text if depth == 0 else _regroup_bracket(text)


def _split_by_depth(text: str) -> Iterator[tuple[int, str]]:
    """Yield (0, text between brackets) and (1, inside of an outer bracket) in order; an unclosed bracket ends with the text."""
    # `start` is where the text begins that was not yielded yet.
    depth, start = 0, 0
    for place, letter in enumerate(text):
        if _OPENING_RE.match(letter):
            if depth == 0 and start < place:
                yield 0, text[start:place]
            start = place + 1 if depth == 0 else start
            depth += 1
        elif depth and _CLOSING_RE.match(letter):
            depth -= 1
            if depth == 0:
                yield 1, text[start:place]
                start = place + 1
    if start < len(text):
        yield min(depth, 1), text[start:]


def _regroup_bracket(inside: str) -> str:
    pieces = list(_split_by_depth(inside))
    outer = " ".join(text.strip(" ") for depth, text in pieces if depth == 0)
    meaning = read_segment(f"{BRACKET}{outer}")
    if len(pieces) > 1 or any(depth for depth, _ in pieces):
        return _flatten_bracket(inside, pieces, outer, is_credit=bool(meaning.credit), is_kept=bool(meaning.kept))
    if meaning.kept or meaning.credit or _is_subtitled(inside):
        return f"({inside})"
    is_torn = any(read_segment(f"{BRACKET}{piece}").kept for piece in _INNER_DASH.split(inside))
    return f"({_INNER_DASH.sub(' ', inside)})" if is_torn else f"({inside})"


def _is_subtitled(inside: str) -> bool:
    """Return whether the bracket holds a subtitle and a note, as after two dashes: `(Nicktim - Original Mix)`.

    It is not a remix by Nicktim, because the note names the original.
    """
    *names, note = _INNER_DASH.split(inside)
    meaning = read_segment(f"{BRACKET}{note}")
    is_cosmetic = not (meaning.kept or meaning.tags or meaning.credit)
    return is_cosmetic and all(read_segment(f"{BRACKET}{name}").kept and not _is_date(extract_words(name).split(" ")) for name in names)


def _flatten_bracket(inside: str, pieces: list[tuple[int, str]], outer: str, *, is_credit: bool, is_kept: bool) -> str:
    """Flatten a bracket with inner brackets.

    Guests keep theirs, a note comes before its inner brackets, parts of the title keep their order.
    """
    if is_credit:
        return f"({_CLOSING_RE.sub(' ', _OPENING_RE.sub(' ', inside))})"
    if is_kept or not extract_words(outer):
        return " ".join(_regroup_bracket(text) for _, text in pieces if extract_words(text))
    # A number or two letters in an inner bracket qualify the name, like a country code.
    pieces = [(depth, text) for depth, text in pieces if not (depth and _QUALIFIER_RE.match(text))]
    flat = " ".join(text.strip(" ") for _, text in pieces)
    if any(depth and read_segment(f"{BRACKET}{text}").kept for depth, text in pieces) and not read_segment(f"{BRACKET}{flat}").kept:
        return f"({flat})"
    return " ".join([f"({outer})", *(_regroup_bracket(text) for depth, text in pieces if depth)])


def _remove_medley(match: re.Match[str]) -> str:
    return " -" if match[0].endswith("/") else ""
