"""The genre tree, free; and for paid plans the tracks of a genre, the same question as `GET /v1/tracks/browse` for the same credit."""

from __future__ import annotations

from typing import Any

from litestar import Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from catalog_api.dashboard.visits import Guest, Visit
from catalog_store.queries.genres import Genre

_LIMIT = 20
_MAIN = "main"
_FEATURE = "browse"


@get("/genres")
async def genres(visit: Guest) -> Response[Any]:
    """The tree: main genres, each with its subgenres."""
    assert visit.person  # noqa: S101 - refuses who is not signed in
    nodes = await _nodes(visit)
    tree = {node: [one for one in nodes if one.parent == node.name] for node in nodes if node.type == _MAIN}
    return visit.page("genres.html", tree=tree)


@get("/genres/{genre_id:int}")
async def genre(visit: Guest, genre_id: FromPath[int]) -> Response[Any]:
    """A genre's place in the tree, and its newest tracks."""
    assert visit.person  # noqa: S101 - refuses who is not signed in
    nodes = await _nodes(visit)
    node = next((one for one in nodes if one.id == genre_id), None)
    if node is None:
        raise NotFoundException("There is no such genre.")
    main = next((one for one in nodes if one.type == _MAIN and one.name == node.parent), None)
    below = [one for one in nodes if one.parent == node.name and node.type == _MAIN]
    plan = (await visit.desk.store.do(visit.service.accounts.account, visit.person.account_id)).plan
    values: dict[str, Any] = {"node": node, "main": main, "below": below, "plan": plan}
    if not plan.allows(_FEATURE):
        return visit.page("genre.html", told=None, **values)
    cursor = visit.request.query_params.get("cursor", "")
    query: dict[str, str | int] = {"genreId": genre_id, "limit": _LIMIT}
    told = await visit.ask("/v1/tracks/browse", {**query, "cursor": cursor} if cursor else query)
    return visit.page("genre.html", told.status, told=told, **values)


async def _nodes(visit: Visit) -> list[Genre]:
    def read() -> list[Genre]:
        with visit.service.live.hold() as catalog:
            return catalog.genres()

    return await visit.desk.store.do(read)
