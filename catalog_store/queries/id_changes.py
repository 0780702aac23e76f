"""The changes of ids between builds: merges, splits, removals, returns (contract B16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from catalog_store.cursors import Place
from catalog_store.errors import InvalidQueryError, UnknownBuildError
from catalog_store.queries.pages import check_limit
from catalog_store.serving.schema import CHANGES, REDIRECT_KINDS

if TYPE_CHECKING:
    from catalog_store.cursors import CursorCodec
    from catalog_store.serving.store import ServingStore

MAX_LIMIT = 1_000
_ORDER = "build, kind, change, old_id, new_id"
_STEPS = 8
"""A base above the number of kinds and above that of changes: build, kind and change share one number of a cursor."""


class Change(NamedTuple):
    """One id that changed in the build `snapshot_id`.

    `kind`: recording, artist, release, label. `change`: merged (new_id replaces old_id), split (new_id is new and took a part of old_id),
    removed (new_id None), restored (a merged or removed old_id lives again; new_id None).
    """

    snapshot_id: str
    kind: str
    change: str
    old_id: int
    new_id: int | None


class ChangePage(NamedTuple):
    """Changes after the requested build up to `until`, the answering build, oldest build first; `next_cursor` is None at the end."""

    until: str
    changes: list[Change]
    next_cursor: str | None


def list_changes(store: ServingStore, cursors: CursorCodec, since: str, *, until: str | None, limit: int, cursor: str | None) -> ChangePage:
    """Return one page of changes after the build `since` up to `until`, by default the last one.

    UnknownBuildError, InvalidQueryError, InvalidCursorError.
    A cursor holds the distance of its build from `since`, so it continues in a later snapshot.
    """
    check_limit(limit, MAX_LIMIT)
    builds: dict[int, str] = dict(store.fetch_rows("SELECT number, snapshot_id FROM build ORDER BY number"))
    first = next((number for number, snapshot_id in builds.items() if snapshot_id == since), None)
    if first is None:
        raise UnknownBuildError(f"this catalog does not know what changed since {since!r}: read everything again")
    last = max(builds) if until is None else next((number for number, snapshot_id in builds.items() if snapshot_id == until), None)
    if last is None:
        raise UnknownBuildError(f"this catalog does not know the build {until!r}: it knows {', '.join(builds.values())}")
    if last < first:
        raise InvalidQueryError(f"until is the build {until!r}, which is older than {since!r}: swap them")
    query = ("changes", since) if until is None else ("changes", since, until)
    place = cursors.decode(query, cursor) if cursor is not None else Place(0.0, 0.0, 0)
    step, sort = divmod(int(place.score), _STEPS * _STEPS)
    # The history drops its oldest builds and restarts its count at 0, so a cursor holds steps from `since` and no build number.
    behind = (first + step, *divmod(sort, _STEPS), place.id, int(place.popularity))
    rows = store.fetch_rows(
        f"SELECT {_ORDER} FROM change WHERE build > ? AND build <= ? AND ({_ORDER}) > (?, ?, ?, ?, ?) ORDER BY {_ORDER} LIMIT ?",
        (first, last, *behind, limit + 1),
    )
    # One row more was read: it shows whether a next page exists.
    page = rows[:limit]
    found = [Change(builds[build], REDIRECT_KINDS[kind], CHANGES[change], old, new or None) for build, kind, change, old, new in page]
    rest = None
    if len(rows) > limit:
        build, kind, change, old_id, new_id = page[-1]
        rest = cursors.encode(query, Place(((build - first) * _STEPS + kind) * _STEPS + change, new_id, old_id))
    return ChangePage(builds[last], found, rest)
