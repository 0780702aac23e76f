"""Search, tracks with their evidence, genres, and suggested corrections.

These pages send the same requests to `/v1` as a caller would, for the same credits. Evidence is read from the tables of the snapshot, which
takes up to seconds in a large catalog: it has a page of its own, one thread per worker, and a deadline (EVIDENCE_SECONDS, site.py).
"""

from __future__ import annotations

import secrets
from typing import Any

from litestar import Response, get, post
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from account_store.suggestions import FIELDS, LONGEST_NOTE, LONGEST_VALUE
from catalog_api.dashboard.browser_session import HOME, Guest, Visit
from catalog_api.dashboard.internal_requests import Told
from catalog_api.live_catalog import LiveCatalog
from catalog_store.queries.evidence import Edge, Evidence
from catalog_store.queries.genre_tree import Genre

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


MOST_SHOWN = 200
"""Of each kind of evidence: a release that a hundred samplers carry has thousands of records."""
_ALPHABET = 26


@get("/tracks/{track_id:int}")
async def track(visit: Guest, track_id: FromPath[int]) -> Response[Any]:
    """The track, as `GET /v1/tracks/{id}?include=isrcs,links` tells it, for the same credit."""
    told = (await visit.ask(f"/v1/tracks/{track_id}", {"include": "isrcs,links"})).or_refused()
    plan = (await visit.as_caller())[0].plan
    return visit.page(
        "track.html", told=told, track=told.document, asked_id=track_id, fields=FIELDS, may_suggest=plan.allows("suggestions")
    )


@get("/tracks/{track_id:int}/evidence")
async def evidence(visit: Guest, track_id: FromPath[int]) -> Response[Any]:
    """Why its records are one track. The track is asked first, for its credit; an id that was merged leads to its survivor."""
    told = (await visit.ask(f"/v1/tracks/{track_id}")).or_refused()
    track = told.document
    known = await visit.context.tables.do(_evidence, visit.service.live, track["id"])
    letters = {} if known is None else {atom.atom_id: letter(place) for place, atom in enumerate(known.atoms)}
    atoms = {} if known is None else {atom.atom_id: atom for atom in known.atoms}
    pairs: dict[tuple[int, int], list[Edge]] = {}
    for edge in [] if known is None else known.edges:
        pairs.setdefault((edge.atom_id_a, edge.atom_id_b), []).append(edge)
    values = {"track": track, "known": known, "letters": letters, "atoms": atoms, "pairs": pairs, "most": MOST_SHOWN}
    return visit.page("evidence.html", told=told, asked_id=track_id, **values)


def _evidence(live: LiveCatalog, track_id: int) -> Evidence | None:
    with live.hold() as catalog:
        return catalog.evidence(track_id)


def letter(place: int) -> str:
    """A, B ... Z, AA, AB ..."""
    return (letter(place // _ALPHABET - 1) if place >= _ALPHABET else "") + chr(ord("A") + place % _ALPHABET)


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
    plan = (await visit.context.store.do(visit.service.accounts.account, visit.person.account_id)).plan
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

    return await visit.context.store.do(read)


_PAGE = 50
_OPTIONAL = ("note", "source_url")


@get("/suggestions")
async def suggestions(visit: Guest) -> Response[Any]:
    """The account's own, oldest first."""
    accounts, account_id = visit.service.accounts, visit.person.account_id
    text = visit.request.query_params.get("after", "0")
    after = int(text) if text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004 - digits of an id in the store
    found, account = await visit.context.store.do(
        lambda: (accounts.suggestions.page(account_id=account_id, limit=_PAGE + 1, after=after), accounts.account(account_id))
    )
    following = found[_PAGE - 1].suggestion_id if len(found) > _PAGE else None
    sent = visit.request.query_params.get("sent", "")
    return visit.page("suggestions.html", found=found[:_PAGE], following=following, plan=account.plan, sent=sent)


@get("/tracks/{track_id:int}/suggestions")
async def suggestion_form(visit: Guest, track_id: FromPath[int]) -> Response[Any]:
    """The form for one track; a plan that may not is told why."""
    return await _form_page(visit, track_id)


@post("/tracks/{track_id:int}/suggestions", status_code=200)
async def suggest(visit: Guest, track_id: FromPath[int]) -> Response[Any]:
    """Send it. The form carries an idempotency key: sent twice, it is one suggestion and one credit."""
    form = visit.form
    body = {"field": form.get("field", ""), "value": form.get("value", "").strip()}
    body |= {name: form[name].strip() for name in _OPTIONAL if form.get(name, "").strip()}
    told = await visit.ask(f"/v1/tracks/{track_id}/suggestions", body=body, idempotency_key=form.get("once", ""))
    if told.is_ok:
        return visit.to(f"{HOME}/suggestions?sent={told.document['id']}")
    return await _form_page(visit, track_id, told)


async def _form_page(visit: Visit, track_id: int, told: Told | None = None) -> Response[Any]:
    plan = (await visit.as_caller())[0].plan
    values = {"fields": FIELDS, "longest_value": LONGEST_VALUE, "longest_note": LONGEST_NOTE, "once": secrets.token_urlsafe(16)}
    status = 200 if told is None else told.status
    return visit.page("suggest.html", status, track_id=track_id, plan=plan, told=told, said=visit.form, **values)


PAGES = [search, track, evidence, genres, genre, suggestions, suggestion_form, suggest]
