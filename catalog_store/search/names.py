"""PROVISIONAL: names as keys and words until catalog_store/name_keys.py is there; then only words remain here."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CREDIT = re.compile(r"[\(\[]?\b(?:feat|ft|featuring|with)\b\.?\s+(.*?)[\)\]]?$", re.IGNORECASE)
_BRACKETS = re.compile(r"[\(\[]([^()\[\]]*)[\)\]]")
_EDIT = re.compile(
    r"\b(?:radio edit|extended mix|original mix|clean|dirty|explicit|remaster(?:ed)?(?: \d{4})?|intro|quick hit|transition.*)\b",
    re.IGNORECASE,
)
_NUMBER_SUFFIX = re.compile(r"\s\(\d+\)$")
_BETWEEN = re.compile(r"\s*(?:,|&|\band\b|\bx\b|\bvs\.?\b|/|;)\s*", re.IGNORECASE)
_NO_WORD = re.compile(r"[^\w]+")


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """Case, accents and punctuation gone; never empty for a non-blank text."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    kept = "".join(c for c in folded if not unicodedata.combining(c)).replace("'", "").replace("\u2019", "")
    words = " ".join(_NO_WORD.sub(" ", kept).split())
    return words or " ".join(kept.split())


def split_title(text: str) -> tuple[str, str, tuple[str, ...]]:
    """(key of the core title, variant, keys of featured artists) of a title as typed."""
    guests: list[str] = []
    credit = _CREDIT.search(text)
    if credit and credit.start() > 0:
        guests = [plain(name) for name in _BETWEEN.split(credit.group(1)) if name.strip()]
        text = text[: credit.start()]
    variant = ""
    core = text
    for inner in _BRACKETS.findall(text):
        if not _EDIT.search(inner):
            variant = plain(inner)
        core = core.replace(f"({inner})", " ").replace(f"[{inner}]", " ")
    return (plain(core) if core.strip() else plain(text)), (variant if core.strip() else ""), tuple(guests)


def split_artists(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(keys of the primary artists, keys of the featured ones) of an artist field as typed."""
    guests: list[str] = []
    credit = _CREDIT.search(text)
    if credit and credit.start() > 0:
        guests = [plain(name) for name in _BETWEEN.split(credit.group(1)) if name.strip()]
        text = text[: credit.start()]
    names = [plain(_NUMBER_SUFFIX.sub("", name)) for name in _BETWEEN.split(text) if name.strip()]
    return tuple(names) or (plain(text),), tuple(guests)
