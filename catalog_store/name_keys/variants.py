"""Variants: the kind of recording that a title names besides its song.

A variant is its tags joined by `+`, sorted: `extended+remix:tiesto`, `live:wembley`, `` (plain). A tag is a kind, or a kind and a name.
"""

from __future__ import annotations

EDIT_KINDS = frozenset({"radio", "edit", "extended", "club", "clean", "intro", "outro", "short", "acap mix", "transition", "vocal"})
"""Kinds that are edits of the same performance. They are recordings of their own, but a search without a variant accepts them."""


def list_variant_kinds(variant: str) -> frozenset[str]:
    """Return the kinds without names: `extended+remix:tiesto` -> {extended, remix}."""
    return frozenset(tag.partition(":")[0] for tag in variant.split("+") if tag)


def are_variants_compatible(one: str, other: str) -> bool:
    """Return whether both can name one recording: the same kinds, and names that are equal, missing or contained in each other."""
    if one == other:
        return True
    names, others = _read_names(one), _read_names(other)
    return names.keys() == others.keys() and all(_are_names_compatible(name, others[kind]) for kind, name in names.items())


def _read_names(variant: str) -> dict[str, str]:
    return {kind: name for kind, _, name in (tag.partition(":") for tag in variant.split("+") if tag)}


def _are_names_compatible(one: str, other: str) -> bool:
    return not one or not other or one in other or other in one
