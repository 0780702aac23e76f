"""The catalog: tables, identifiers, name keys, snapshots and the queries over a published one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from catalog_store.reader import open_catalog

__all__ = ["open_catalog"]


def __getattr__(name: str) -> object:
    """Import `catalog_store.open_catalog` on first use: the schema alone must not load the search index's libraries."""
    if name == "open_catalog":
        from catalog_store.reader import open_catalog  # noqa: PLC0415

        return open_catalog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
