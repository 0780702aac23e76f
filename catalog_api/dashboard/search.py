"""Trying a search: the same question as `GET /v1/tracks/search`, for the same credit."""

from __future__ import annotations

from typing import Any

from litestar import Response, get

from catalog_api.dashboard.visits import Guest

_LIMIT = 20
_ASKED = ("artist", "title", "cursor")


@get("/search")
async def search(visit: Guest) -> Response[Any]:
    """The form, and what was found when it was filled in."""
    _, key = await visit.as_caller()
    asked = {name: visit.request.query_params.get(name, "").strip() for name in _ASKED}
    told = None
    if asked["artist"] or asked["title"]:
        query = {name: text for name, text in asked.items() if text}
        told = await visit.ask("/v1/tracks/search", {**query, "limit": _LIMIT})
    problems = {} if told is None or told.is_ok else told.problems
    status = 200 if told is None else told.status
    return visit.page("search.html", status, asked=asked, told=told, problems=problems, key=key)
