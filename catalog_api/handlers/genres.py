"""The canonical genre tree (specification 4.9)."""

from __future__ import annotations

from litestar import Response, get

from catalog_api.answers import answer, documented
from catalog_api.live_catalog import LiveCatalog
from catalog_api.wire import Genre, GenreTree

ONE_DAY = "max-age=86400"
"""The tree is stable for weeks (contract A16)."""


@get("/v1/genres", tags=["Genres"], summary="The canonical genre tree", responses=documented(GenreTree), sync_to_thread=False)
def genres(catalog: LiveCatalog) -> Response[bytes]:
    """The full tree as a flat list: mains first, each subgenre with the name of its main."""
    tree = GenreTree([Genre(node.id, node.name, node.type, node.parent) for node in catalog.get().genres()])
    return answer(tree, {"Cache-Control": ONE_DAY})
