"""The canonical genre tree as a flat list (contract B14, F1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from catalog_store.serving.store import ServingStore


class Genre(NamedTuple):
    """A node: `type` is main or subgenre; `parent` is the name of the main, also for depth-3 nodes, None for mains."""

    id: int
    name: str
    type: str
    parent: str | None


def read_genres(store: ServingStore) -> list[Genre]:
    """Return the whole tree, by id."""
    return [Genre(*row) for row in store.fetch_rows("SELECT genre_id, name, type, parent FROM genre ORDER BY genre_id")]
