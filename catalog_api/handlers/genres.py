"""The canonical genre tree (specification 4.9)."""

from __future__ import annotations

from catalog_api.answers import ONE_DAY, Answer, encoded
from catalog_api.metering import Lookup, Question
from catalog_api.parameters import Asked
from catalog_api.routes import reads
from catalog_api.service import Service
from catalog_api.wire.genres import Genre, GenreTree
from catalog_store.reader import Catalog


@reads("/v1/genres", GenreTree, tag="Genres", summary="The canonical genre tree")
def genres(_asked: Asked) -> Question:
    """The full tree as a flat list: mains first, each subgenre with the name of its main. Stable for weeks: keep it for a day."""
    return Lookup(_tree)


def _tree(catalog: Catalog, _service: Service) -> Answer:
    answer = encoded(GenreTree([Genre(*node) for node in catalog.genres()]))
    answer.headers["cache-control"] = ONE_DAY
    return answer
