"""How well the variant asked for (remix, live ...) fits the one found; and notes that name one although no grammar reads them.

What is typed is misspelt, runs together or stands without brackets: `Song live`, `Song (Rdaio Edit)`, `Song (TiestoRemix)`. Here the
wordings that a known variant may have are compared with what was typed: a document says which wordings can be meant. Grammar and meaning of
notes are catalog_store/name_keys.
"""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz import fuzz

from catalog_store.name_keys import EDIT_KINDS, variants_agree

SAME_PERFORMANCE = 0.995
_MISSPELT, _UNASKED, _MISSING, _OTHER = 0.998, 0.94, 0.90, 0.86
"""What a variant read through a typing error, one that was not asked for, a missing one and another one are worth of the right one."""
_ALIKE = 0.75
"""Wordings nearer than this are one misspelt: `rdaio edit` and `radio edit`."""
_WORDINGS = {
    "radio": ("radioedit", "radiomix", "radioversion"),
    "extended": ("extendedmix", "extendedversion", "extended"),
    "club": ("clubmix", "clubversion"),
    "clean": ("clean", "cleanversion", "cleanedit"),
    "short": ("shortedit", "shortversion"),
}
_SHORTEST_NOTE = 3


@lru_cache(maxsize=65_536)
def wordings(variant: str) -> tuple[str, ...]:
    """How a note may say a variant, without spaces: `remix:tiesto` -> tiestoremix, tiestomix ..."""
    tags = [tag.partition(":") for tag in variant.split("+")]
    names = "".join(dict.fromkeys(name for _, _, name in tags))
    kinds = [kind.replace(" ", "") for kind, _, _ in tags]
    if len(kinds) == 1 and not names:
        return _WORDINGS.get(kinds[0], (kinds[0], f"{kinds[0]}version", f"{kinds[0]}mix"))
    together = "".join(kinds)
    if "live" in kinds:
        return (f"{together}{names}", f"{together}at{names}", f"{together}in{names}")
    # `edit:x` is what is made of a misspelt word before it, so both orders must be told from each other by little.
    return (f"{names}{together}", f"{names}{together}mix", f"{names}{together}version")


@lru_cache(maxsize=65_536)
def variant_fit(asked: str, found: str) -> tuple[float, str]:
    """(share of a full match, reason) for two variants."""
    if asked == found:
        return 1.0, "variant_equal"
    if variants_agree(asked, found):
        return SAME_PERFORMANCE, "variant_equal"
    alike = _alike(asked, found) if asked and found else 0.0
    asked_performance, found_performance = _performance(asked), _performance(found)
    if asked_performance == found_performance:
        return (_MISSPELT, "variant_similar") if alike >= _ALIKE else (SAME_PERFORMANCE, "edit_absorbed")
    if not asked_performance:
        return _UNASKED, "variant_unasked"
    if not found_performance:
        return (_MISSPELT, "variant_similar") if alike >= _ALIKE else (_MISSING, "variant_missing")
    return _OTHER + (SAME_PERFORMANCE - _OTHER) * max(0.0, 2 * alike - 1), "variant_differs"


def note_fit(note: str, found: str) -> float:
    """How well what follows a title, without spaces, says the variant found: 0, or from _ALIKE to 1."""
    if len(note) < _SHORTEST_NOTE:
        return 0.0
    alike = max(fuzz.ratio(note, wording) for wording in wordings(found)) / 100
    return alike if alike >= _ALIKE else 0.0


def _alike(asked: str, found: str) -> float:
    one, other = asked.partition(":"), found.partition(":")
    if "+" not in asked and "+" not in found and one[0] == other[0]:
        return fuzz.ratio(one[2], other[2]) / 100
    return max(fuzz.ratio(mine, theirs) for mine in wordings(asked)[:1] for theirs in wordings(found)) / 100


def _performance(variant: str) -> str:
    """The variant without what is an edit of the same performance."""
    return "+".join(tag for tag in variant.split("+") if tag.partition(":")[0] not in EDIT_KINDS)
