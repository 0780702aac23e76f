"""Typed names: typing errors, and noise that leaves the name the same.

Each function takes a `random.Random` and one text and knows neither catalogs nor searches. Words of noise are those that shops,
players and record pools add. Add one here when users type it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from catalog_store.name_keys import fold

if TYPE_CHECKING:
    from random import Random

_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_EDITS = ("substitute", "delete", "insert", "transpose")
_BY_NEIGHBOUR = 0.7
"""Share of wrong letters that are beside the right one; the rest may be any."""
_ATTEMPTS = 20

EDIT_TAGS = (
    " (Radio Edit)", " - Radio Edit", " (Extended Mix)", " - Extended Mix", " (Original Mix)", " - Original Mix", " [Clean]", " (Clean)",
    " (Dirty)", " (Explicit)", " - Explicit", " (Remastered 2011)", " - 2009 Remaster", " - Remastered", " (Album Version)",
    " (Single Version)", " [Official Video]", " (Official Audio)", " (Lyrics)",
    " (Bonus Track)", " (Deluxe Edition)", " radio edit", " original mix",
)  # fmt: skip
POOL_TAGS = (
    " (Intro)", " (Intro Clean)", " (Intro - Dirty)", " (Quick Hit)", " (Quick Hit - Clean)", " (Transition 100-128)", " (Short Edit)",
    " (Outro)", " (DJ Intro)", " 128 BPM", " (Club Intro)",
)  # fmt: skip
_ARTICLE = "the "
TAGS_SHARE = 0.6
"""Share of cosmetic queries that carry an edit or pool tag. The others differ only in characters."""


def add_typo(rng: Random, text: str) -> str:
    """Apply one edit: a letter wrong, missing, too many, or swapped with the next. All places are equally likely."""
    key = _fold_text(text)
    if not key:
        return text
    for _ in range(_ATTEMPTS):
        place = rng.randrange(len(text))
        if not (text[place].isalnum() or text[place] == " "):
            continue
        edited = _apply_edit(rng, text, place, rng.choice(_EDITS))
        # An edit that folding removes (case, an accent) is not a typing error for a search.
        if edited.strip() and _fold_text(edited) != key:
            return edited
    return text


def _fold_text(text: str) -> str:
    """Return what an edit must change: letters, digits and word ends."""
    return " ".join("".join(one if one.isalnum() else " " for one in fold(text)).split())


def _apply_edit(rng: Random, text: str, place: int, edit: str) -> str:
    here = text[place]
    if edit == "delete":
        return text[:place] + text[place + 1 :]
    if edit == "transpose":
        return text[:place] + text[place + 1 : place + 2] + here + text[place + 2 :]
    other = _choose_letter(rng, text, here)
    kept = here if edit == "insert" else ""
    return text[:place] + (kept + other if rng.random() < 0.5 else other + kept) + text[place + 1 :]  # noqa: PLR2004 - a coin


def _choose_letter(rng: Random, text: str, here: str) -> str:
    if not here.isascii():
        return rng.choice([one for one in text if one.isalnum()])
    beside = _list_neighbour_keys(here.lower()) if rng.random() < _BY_NEIGHBOUR else ""
    other = rng.choice(beside or _LETTERS)
    return other.upper() if here.isupper() else other


def _list_neighbour_keys(letter: str) -> str:
    """Return the keys next to a key, rows above and below included."""
    for number, row in enumerate(_ROWS):
        place = row.find(letter)
        if place >= 0:
            near = [row[max(0, place - 1) : place + 2].replace(letter, "")]
            near += [other[max(0, place - 1) : place + 2] for other in _ROWS[max(0, number - 1) : number + 2] if other is not row]
            return "".join(near)
    return ""


def add_noise(rng: Random, artist: str, title: str, *, may_tag: bool) -> tuple[str, str]:
    """Return artist and title with one to three kinds of noise that leave both the same; `may_tag` allows edit and pool tags."""
    changed = (artist, title)
    for _ in range(_ATTEMPTS):
        artist_now, title_now = artist, title
        if may_tag and rng.random() < TAGS_SHARE:
            title_now += rng.choice(EDIT_TAGS if rng.random() < 0.7 else POOL_TAGS)  # noqa: PLR2004 - most come from shops
        for noise in rng.sample(_NOISE, rng.randint(1, 3)):
            artist_now, title_now = noise(rng, artist_now), noise(rng, title_now)
        if rng.random() < 0.15:  # noqa: PLR2004 - one in seven
            artist_now = _rename_artist(rng, artist_now)
        changed = (artist_now, title_now)
        if changed != (artist, title) and artist_now.strip() and title_now.strip():
            break
    return changed


def _rename_artist(rng: Random, artist: str) -> str:
    """Return the name with a number that separates namesakes elsewhere, or with or without its article."""
    if rng.random() < 0.5:  # noqa: PLR2004 - a coin
        return f"{artist} ({rng.randint(2, 9)})"
    if artist.lower().startswith(_ARTICLE):
        return artist[len(_ARTICLE) :] or artist
    return f"The {artist}" if artist.isascii() else artist


def _change_case(rng: Random, text: str) -> str:
    return rng.choice((str.lower, str.upper, str.title))(text)


def _drop_accents(_: Random, text: str) -> str:
    """Return Latin letters without their marks; other scripts stay, because there marks make letters."""
    return "".join(unicodedata.normalize("NFKD", one)[0] if "\u00c0" <= one <= "\u024f" else one for one in text)


def _change_apostrophes(rng: Random, text: str) -> str:
    return re.sub("['\u2019]", rng.choice(("", "\u2019", "`", "'")), text)


def _change_stops(rng: Random, text: str) -> str:
    text = re.sub(r"[,.!?:;]+(?= |$)", rng.choice(("", "", " ")), text)
    return re.sub(r"(?<=[^ ])-(?=[^ ])", rng.choice(("-", " ", "\u2013")), text)


def _change_joins(rng: Random, text: str) -> str:
    return re.sub(r" (?:&|and) ", rng.choice((" and ", " & ", " + ")), text)


def _change_spaces(rng: Random, text: str) -> str:
    return rng.choice((f" {text}", f"{text} ", text.replace(" ", "  ")))


_NOISE = (_change_case, _change_case, _drop_accents, _change_apostrophes, _change_stops, _change_joins, _change_spaces)
