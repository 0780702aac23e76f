"""Artists, labels and genres by id or by name, and how long their lists are."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from catalog_store.cursors import Place
from catalog_store.name_keys import build_name_key
from catalog_store.queries.pages import check_limit
from catalog_store.queries.tracks import find_survivor
from catalog_store.search.pasted_texts import look_up_pasted
from catalog_store.serving.lookup_keys import NAME_KINDS, hash_name
from catalog_store.serving.store import SET_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalog_store.cursors import CursorCodec
    from catalog_store.serving.store import ServingStore

_LARGEST_ID = 2**63 - 1


class Named(NamedTuple):
    """An artist or label with the lengths of its lists."""

    id: int
    name: str
    tracks: int
    releases: int


class NamedPage(NamedTuple):
    """`entities` in order; `next_cursor` is None exactly at the end."""

    entities: list[Named]
    next_cursor: str | None


def find_by_id(store: ServingStore, kind: str, identifier: int) -> Named | None:
    """Return the artist or label (`kind`) of that id, or the one it was merged into."""
    found = _read_row(store, kind, identifier)
    if found is None and (heir := find_survivor(store, kind, identifier)) is not None:
        found = _read_row(store, kind, heir)
    return found


def find_ids_by_name(store: ServingStore, kind: str, name: str) -> list[int]:
    """Return ids of the artists, labels or genres (`kind`) with a name of the same key, ascending; none for a blank name.

    An artist counts by its own name and by each name under which a recording or release credits it. By a name that a platform lists (an
    alias, a sort name) it counts if nobody with recordings or releases has that name otherwise. A name that nothing has as written may have
    been copied with its encoding.
    """
    return look_up_pasted(name, partial(_find_ids, store, kind))


def _find_ids(store: ServingStore, kind: str, name: str) -> list[int]:
    key = build_name_key(name.encode(errors="replace").decode())
    rows = store.fetch_rows(
        # A subquery and not a join: both tables are views of two layers, and a join of them takes twice as long.
        f"SELECT id, CASE other_name WHEN '' THEN (SELECT name FROM {kind} WHERE {kind}_id = id) ELSE other_name END FROM name "
        "WHERE kind = ? AND hash = ?",
        (NAME_KINDS.index(kind), hash_name(NAME_KINDS.index(kind), key)),
    )
    # The hash of a key may be shared by another key, so the names themselves are compared.
    return sorted({identifier for identifier, other in rows if key and build_name_key(other) == key})


def list_by_name(store: ServingStore, cursors: CursorCodec, kind: str, name: str, *, limit: int, cursor: str | None) -> NamedPage:
    """Return one page of the artists or labels (`kind`) that `find_ids_by_name` finds: most tracks first, then most releases, then by id.

    InvalidQueryError, InvalidCursorError.
    """
    check_limit(limit)
    query = (f"{kind}_by_name", name)
    last = cursors.decode(query, cursor) if cursor is not None else None
    found = rank_entities(read_entities(store, kind, find_ids_by_name(store, kind, name)))
    rest = [one for one in found if last is None or _find_place(one).order > last.order]
    page = rest[:limit]
    return NamedPage(page, cursors.encode(query, _find_place(page[-1])) if len(rest) > limit else None)


def rank_entities(entities: Sequence[Named]) -> list[Named]:
    """Return artists or labels in the order of lists by name."""
    return sorted(entities, key=lambda one: _find_place(one).order)


def _find_place(entity: Named) -> Place:
    return Place(entity.tracks, entity.releases, entity.id)


def _read_row(store: ServingStore, kind: str, identifier: int) -> Named | None:
    rows = read_entities(store, kind, [identifier]) if 0 < identifier <= _LARGEST_ID else []
    return rows[0] if rows else None


def read_entities(store: ServingStore, kind: str, identifiers: Sequence[int]) -> list[Named]:
    """Return the artists or labels (`kind`) of these ids, in any order; unknown ids are absent."""
    found: list[Named] = []
    for start in range(0, len(identifiers), SET_LIMIT):
        chosen = tuple(identifiers[start : start + SET_LIMIT])
        marks = ",".join("?" * len(chosen))
        found += (Named(*row) for row in store.fetch_rows(f"SELECT * FROM {kind} WHERE {kind}_id IN ({marks})", chosen))
    return found
