"""Variants: the kind of recording that a title names besides its song.

A variant is its tags joined by `+`, sorted: `extended+remix:tiesto`, `live:wembley`, `` (plain). A tag is a kind, or a kind and a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

EDIT_KINDS = frozenset(
    {"radio", "edit", "extended", "club", "clean", "intro", "outro", "short", "acap mix", "transition", "vocal", "surround"}
)
"""Kinds that are edits of the same performance. They are recordings of their own, but a search without a variant accepts them."""


_RUNS = re.compile("[0-9]+|[^0-9]+")
"""Words and numbers in the name of a kind, which has no spaces."""


def list_variant_kinds(variant: str) -> frozenset[str]:
    """Return the kinds without names: `extended+remix:tiesto` -> {extended, remix}."""
    return frozenset(tag.partition(":")[0] for tag in variant.split("+") if tag)


VARIANT_FIELDS = {"kind": pl.String(), "name": pl.String(), "year": pl.Int32()}
_YEAR = "(^|[^0-9])((?:19|20)[0-9]{2})([^0-9]|$)"
"""Four digits of a name that are a year, not a part of a longer number."""


def build_variants_expr(variant: pl.Expr) -> pl.Expr:
    """Return the tags of variants as lists of structs VARIANT_FIELDS, in the order of the text; the plain recording has none.

    `name` is by whom or where, without the year; null where the tag is a bare kind.
    """
    parts = pl.element().str.splitn(":", 2).struct
    kind, named = parts.field("field_0"), parts.field("field_1")
    name = named.str.replace(_YEAR, "${1}${3}")
    tag = pl.struct(kind=kind, name=pl.when(name != "").then(name), year=named.str.extract(_YEAR, 2).cast(pl.Int32))
    tags = variant.str.split("+").list.eval(pl.element().filter(pl.element() != ""))
    return tags.list.eval(tag).cast(pl.List(pl.Struct(VARIANT_FIELDS)))


def are_variants_compatible(one: str, other: str) -> bool:
    """Return whether both can name one recording: the same kinds, and names that are equal, missing or contained in each other.

    A place counts as contained if each of its words and numbers is.
    """
    if one == other:
        return True
    names, others = _read_names(one), _read_names(other)
    if "unplugged" in names or "unplugged" in others:
        names, others = _read_unplugged(names), _read_unplugged(others)
    if names.keys() != others.keys():
        return False
    return all(_are_names_compatible(name, others[kind], is_place=kind == "live") for kind, name in names.items())


def join_tags(tags: Iterable[str]) -> str:
    """Return the variant of these tags. A bare kind says nothing beside the same kind with a name: `Song (Live) - Live at Wembley`."""
    distinct = set(tags)
    named = {tag.partition(":")[0] for tag in distinct if ":" in tag}
    return "+".join(sorted(distinct - named))


def _read_names(variant: str) -> dict[str, str]:
    return {kind: name for kind, _, name in (tag.partition(":") for tag in variant.split("+") if tag)}


def _read_unplugged(names: dict[str, str]) -> dict[str, str]:
    """Return the kinds with an unplugged session as the acoustic concert that it is: `Unplugged`, `Acoustic (Live)`."""
    place = names.get("unplugged") or names.get("live", "")
    kinds = {kind: name for kind, name in names.items() if kind not in {"unplugged", "acoustic"}}
    return kinds | {"live": place} if "unplugged" in names else kinds


def _are_names_compatible(one: str, other: str, *, is_place: bool) -> bool:
    if not one or not other or _is_contained(one, other) or _is_contained(other, one):
        return True
    # Platforms write place and date in any order: `Live at Budokan, 1999`, `live, 1999-05-01: Budokan, Tokyo`.
    return is_place and (_has_runs(one, other) or _has_runs(other, one))


def _is_contained(inner: str, outer: str) -> bool:
    """Return whether one name contains the other, and no number is cut: take 1 is not take 12."""
    place = outer.find(inner)
    if place < 0:
        return False
    behind = outer[place + len(inner) :]
    is_cut = (inner[:1].isdigit() and outer[:place][-1:].isdigit()) or (inner[-1:].isdigit() and behind[:1].isdigit())
    return not is_cut or _is_contained(inner, outer[place + 1 :])


def _has_runs(outer: str, inner: str) -> bool:
    return all(run in outer for run in _RUNS.findall(inner))
