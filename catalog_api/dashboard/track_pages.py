"""Search, tracks with their evidence, genres, and suggested corrections.

These pages send the same requests to `/v1` as a caller would, for the same credits. Evidence is read from the tables of the snapshot, which
takes up to seconds in a large catalog: it has a page of its own, one thread per worker, and a deadline (EVIDENCE_SECONDS, site.py).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from litestar import Response, get, post
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from account_store.suggestions import FIELDS, LONGEST_NOTE, LONGEST_VALUE
from catalog_api.dashboard.browser_session import HOME, CurrentVisit, Visit
from catalog_api.dashboard.internal_requests import ApiResponse
from catalog_api.live_catalog import LiveCatalog
from catalog_api.source_records import build_source_records
from catalog_api.wire.catalog_types import SourceRecord
from catalog_store.queries.evidence import Edge, Evidence
from catalog_store.queries.genre_tree import Genre

_LIMIT = 20
_ASKED = ("artist", "title", "cursor")


@get("/search")
async def search(visit: CurrentVisit) -> Response[Any]:
    """Show the form, and the results once it is filled in."""
    _, key = await visit.find_caller()
    asked = {name: visit.request.query_params.get(name, "").strip() for name in _ASKED}
    answer = None
    if asked["artist"] or asked["title"]:
        query = {name: text for name, text in asked.items() if text}
        answer = await visit.request_api("/v1/tracks/search", {**query, "limit": _LIMIT})
    problems = {} if answer is None or answer.is_ok else answer.problems
    status = 200 if answer is None else answer.status
    return visit.render("search.html", status, asked=asked, answer=answer, problems=problems, key=key)


MOST_SHOWN = 200
"""Items of each kind of evidence that are shown: a track on a hundred samplers has thousands of records."""
_ALPHABET = 26


@get("/tracks/{track_id:int}")
async def show_track(visit: CurrentVisit, track_id: FromPath[int]) -> Response[Any]:
    """Show the track, as `GET /v1/tracks/{id}?include=isrcs,links` answers it, for the same credit."""
    answer = (await visit.request_api(f"/v1/tracks/{track_id}", {"include": "isrcs,links"})).raise_if_refused()
    plan = (await visit.find_caller())[0].plan
    return visit.render(
        "track.html", answer=answer, track=answer.document, asked_id=track_id, fields=FIELDS, may_suggest=plan.has_feature("suggestions")
    )


@get("/tracks/{track_id:int}/evidence")
async def show_evidence(visit: CurrentVisit, track_id: FromPath[int]) -> Response[Any]:
    """Show why the records of a track are one track. The track costs its credit; a merged id leads to its survivor."""
    # This charges for the page; reading the tables costs no credit of its own.
    answer = (await visit.request_api(f"/v1/tracks/{track_id}")).raise_if_refused()
    track = answer.document
    own = visit.service.settings.url_templates
    known, records = await visit.context.tables.run(_read_evidence, visit.service.live, track["id"], own)
    letters = {} if known is None else {atom.atom_id: format_atom_letter(place) for place, atom in enumerate(known.atoms)}
    atoms = {} if known is None else {atom.atom_id: atom for atom in known.atoms}
    pairs: dict[tuple[int, int], list[Edge]] = {}
    for edge in [] if known is None else known.edges:
        # Several pieces of evidence may join the same two atoms.
        pairs.setdefault((edge.atom_id_a, edge.atom_id_b), []).append(edge)
    values = {"track": track, "known": known, "records": records, "letters": letters, "atoms": atoms, "pairs": pairs, "most": MOST_SHOWN}
    return visit.render("evidence.html", answer=answer, asked_id=track_id, **values)


def _read_evidence(live: LiveCatalog, track_id: int, own: Mapping[str, str]) -> tuple[Evidence | None, list[SourceRecord]]:
    with live.hold() as catalog:
        known = catalog.collect_evidence(track_id)
        # Thousands of records of a track on samplers are not read: the page shows some.
        return known, [] if known is None else build_source_records(catalog, track_id, known.members[:MOST_SHOWN], own)


def format_atom_letter(place: int) -> str:
    """Return A, B ... Z, AA, AB ..."""
    return (format_atom_letter(place // _ALPHABET - 1) if place >= _ALPHABET else "") + chr(ord("A") + place % _ALPHABET)


_LIMIT = 20
_MAIN = "main"
_FEATURE = "browse"


@get("/genres")
async def show_genres(visit: CurrentVisit) -> Response[Any]:
    """Show the tree: main genres, each with its subgenres."""
    assert visit.person  # noqa: S101 - refuses who is not signed in
    nodes = await _read_genres(visit)
    tree = {node: [one for one in nodes if one.parent == node.name] for node in nodes if node.type == _MAIN}
    return visit.render("genres.html", tree=tree)


@get("/genres/{genre_id:int}")
async def show_genre(visit: CurrentVisit, genre_id: FromPath[int]) -> Response[Any]:
    """Show a genre's place in the tree, and its newest tracks."""
    assert visit.person  # noqa: S101 - refuses who is not signed in
    nodes = await _read_genres(visit)
    node = next((one for one in nodes if one.id == genre_id), None)
    if node is None:
        raise NotFoundException("There is no such genre.")
    main = next((one for one in nodes if one.type == _MAIN and one.name == node.parent), None)
    below = [one for one in nodes if one.parent == node.name and node.type == _MAIN]
    plan = (await visit.context.store.run(visit.service.accounts.get, visit.person.account_id)).plan
    values: dict[str, Any] = {"node": node, "main": main, "below": below, "plan": plan}
    # The tree is free; a request to /v1 would only be refused.
    if not plan.has_feature(_FEATURE):
        return visit.render("genre.html", answer=None, **values)
    cursor = visit.request.query_params.get("cursor", "")
    query: dict[str, str | int] = {"genreId": genre_id, "limit": _LIMIT}
    answer = await visit.request_api("/v1/tracks/browse", {**query, "cursor": cursor} if cursor else query)
    return visit.render("genre.html", answer.status, answer=answer, **values)


async def _read_genres(visit: Visit) -> list[Genre]:
    def read() -> list[Genre]:
        with visit.service.live.hold() as catalog:
            return catalog.read_genres()

    return await visit.context.store.run(read)


_PAGE = 50
_OPTIONAL = ("note", "source_url")


@get("/suggestions")
async def show_suggestions(visit: CurrentVisit) -> Response[Any]:
    """Show the account's own suggestions, oldest first."""
    accounts, account_id = visit.service.accounts, visit.person.account_id
    text = visit.request.query_params.get("after", "0")
    after = int(text) if text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004 - digits of an id in the store
    # One more than a page shows whether another page follows.
    found, account = await visit.context.store.run(
        lambda: (accounts.suggestions.read_page(account_id=account_id, limit=_PAGE + 1, after=after), accounts.get(account_id))
    )
    following = found[_PAGE - 1].suggestion_id if len(found) > _PAGE else None
    sent = visit.request.query_params.get("sent", "")
    return visit.render("suggestions.html", found=found[:_PAGE], following=following, plan=account.plan, sent=sent)


@get("/tracks/{track_id:int}/suggestions")
async def show_suggestion_form(visit: CurrentVisit, track_id: FromPath[int]) -> Response[Any]:
    """Show the form for one track; a plan without suggestions gets the reason."""
    return await _render_form(visit, track_id)


@post("/tracks/{track_id:int}/suggestions", status_code=200)
async def suggest(visit: CurrentVisit, track_id: FromPath[int]) -> Response[Any]:
    """Send the suggestion. The form carries an idempotency key: sent twice, it is one suggestion and one credit."""
    form = visit.form
    body = {"field": form.get("field", ""), "value": form.get("value", "").strip()}
    body |= {name: form[name].strip() for name in _OPTIONAL if form.get(name, "").strip()}
    answer = await visit.request_api(f"/v1/tracks/{track_id}/suggestions", body=body, idempotency_key=form.get("once", ""))
    if answer.is_ok:
        return visit.redirect(f"{HOME}/suggestions?sent={answer.document['id']}")
    return await _render_form(visit, track_id, answer)


async def _render_form(visit: Visit, track_id: int, answer: ApiResponse | None = None) -> Response[Any]:
    plan = (await visit.find_caller())[0].plan
    values = {"fields": FIELDS, "longest_value": LONGEST_VALUE, "longest_note": LONGEST_NOTE, "once": secrets.token_urlsafe(16)}
    status = 200 if answer is None else answer.status
    return visit.render("suggest.html", status, track_id=track_id, plan=plan, answer=answer, form_values=visit.form, **values)


PAGES = [search, show_track, show_evidence, show_genres, show_genre, show_suggestions, show_suggestion_form, suggest]
