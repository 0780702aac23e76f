"""What the catalog is: tables, identifiers, name keys, snapshots and the queries over a published one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from catalog_store.reader import open_catalog

__all__ = ["open_catalog"]


def __getattr__(name: str) -> object:
    """`catalog_store.open_catalog`, imported when first asked for: the schema alone must not cost the search index's libraries."""
    if name == "open_catalog":
        from catalog_store.reader import open_catalog  # noqa: PLC0415

        return open_catalog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
