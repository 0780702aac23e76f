"""Comparison of variants (remix, live ...), and of notes that no grammar reads.

People misspell notes, join words or leave out brackets: `Song live`, `Song (Rdaio Edit)`, `Song (TiestoRemix)`. This module compares what
was typed with the possible spellings of the document's variant. The grammar and meaning of notes belong in catalog_store/name_keys.
"""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz import fuzz

from catalog_store.name_keys import EDIT_KINDS, are_variants_compatible, build_title_keys

SAME_PERFORMANCE = 0.995
_BELOW_MISSING = 0.895
_MISSPELLED, _UNREQUESTED, _MISSING, _OTHER = 0.998, 0.94, 0.90, 0.86
"""Share of a full match for a variant with a typing error, one that was not asked for, a missing one, and a different one."""
_LEAST_LIKENESS = 0.75
"""Spellings at least this similar count as one misspelled spelling: `rdaio edit` and `radio edit`."""
_WORDINGS = {
    "radio": ("radioedit", "radiomix", "radioversion"),
    "extended": ("extendedmix", "extendedversion", "extended"),
    "club": ("clubmix", "clubversion"),
    "clean": ("clean", "cleanversion", "cleanedit"),
    "short": ("shortedit", "shortversion"),
}
_UNKNOWN = "version"
"""The kind of a version that only its name shows."""
_SHORTEST_NOTE, _SHORTEST_PART, _PART_OF_NAME = 3, 4, 0.9


@lru_cache(maxsize=65_536)
def spell_variant(variant: str) -> tuple[str, ...]:
    """Return the spellings of a variant in a note, without spaces: `remix:tiesto` -> tiestoremix, tiestomix ..."""
    tags = [tag.partition(":") for tag in variant.split("+")]
    names = "".join(dict.fromkeys(name for _, _, name in tags))
    kinds = [kind.replace(" ", "") for kind, _, _ in tags]
    if len(kinds) == 1 and not names:
        return _WORDINGS.get(kinds[0], (kinds[0], f"{kinds[0]}version", f"{kinds[0]}mix"))
    together = "".join(kinds)
    if "live" in kinds:
        return (f"{together}{names}", f"{together}at{names}", f"{together}in{names}")
    # A misspelled version word yields `edit:x`, so both orders must be nearly alike.
    return (f"{names}{together}", f"{names}{together}mix", f"{names}{together}version")


@lru_cache(maxsize=65_536)
def compare_variants(query: str, candidate: str) -> tuple[float, str]:
    """Compare two variants; return (share of a full match, reason)."""
    if query == candidate:
        return 1.0, "variant_equal"
    if are_variants_compatible(query, candidate):
        return SAME_PERFORMANCE, "variant_equal"
    # An empty variant is the plain recording; its likeness to a note is not a matter of spelling.
    alike = _measure_likeness(query, candidate) if query and candidate else 0.0
    query_performance, candidate_performance = _strip_edits(query), _strip_edits(candidate)
    if query_performance == candidate_performance:
        return (_MISSPELLED, "variant_similar") if alike >= _LEAST_LIKENESS else (SAME_PERFORMANCE, "edit_absorbed")
    if not query_performance:
        return _UNREQUESTED, "variant_unasked"
    if not candidate_performance:
        return (_MISSPELLED, "variant_similar") if alike >= _LEAST_LIKENESS else (_MISSING, "variant_missing")
    # Half alike is no evidence for the same variant. From there on the share rises to that of the same performance.
    share = _OTHER + (SAME_PERFORMANCE - _OTHER) * max(0.0, 2 * alike - 1)
    # An unknown `(Movie Version)` must not lift `(Live)` above the plain recording because some letters agree.
    return share if alike >= _LEAST_LIKENESS else min(share, _BELOW_MISSING), "variant_differs"


def compare_note(note: str, candidate: str) -> float:
    """Return how well a note, without spaces, names the variant `candidate`: 0, or from _LEAST_LIKENESS to 1."""
    if len(note) < _SHORTEST_NOTE:
        return 0.0
    alike = max(fuzz.ratio(note, wording) for wording in spell_variant(candidate)) / 100
    return alike if alike >= _LEAST_LIKENESS else 0.0


@lru_cache(maxsize=16_384)
def read_note(title: str, core: str, candidate: str) -> float:
    """Return how well the words of `title` behind `core` name the variant `candidate`: read as if in brackets, or as part of its name."""
    if not title.startswith(f"{core} "):
        return 0.0
    note = title[len(core) + 1 :]
    variant = build_title_keys(f"x ({note})").variant
    if variant and are_variants_compatible(variant, candidate) and _strip_edits(variant) == variant:
        return 1.0
    # `mr brightside thin white duke`; one word of a name may be any other song's.
    compact = note.replace(" ", "")
    is_part = len(compact) >= _SHORTEST_PART and any(compact in tag.partition(":")[2] for tag in candidate.split("+"))
    return _PART_OF_NAME if is_part else 0.0


def _measure_likeness(query: str, candidate: str) -> float:
    one, other = query.partition(":"), candidate.partition(":")
    if "+" not in query and "+" not in candidate and one[0] == other[0]:
        return fuzz.ratio(one[2], other[2]) / 100
    # `(Movie Version)` and `(Live Version)` share the word `version` alone.
    if _UNKNOWN in {one[0], other[0]} and one[2] + other[2]:
        return fuzz.ratio(*((kind if kind != _UNKNOWN else "") + name for kind, _, name in (one, other))) / 100
    return max(fuzz.ratio(mine, theirs) for mine in spell_variant(query)[:1] for theirs in spell_variant(candidate)) / 100


def _strip_edits(variant: str) -> str:
    """Return the variant without its tags for edits of the same performance."""
    return "+".join(tag for tag in variant.split("+") if tag.partition(":")[0] not in EDIT_KINDS)
