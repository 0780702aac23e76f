"""A track with its links, and why it is one track.

The evidence is read from the tables of the snapshot, up to seconds in a large catalog: on a page of its own, in a thread, one read at a
time in each worker, given up after EVIDENCE_SECONDS (site.py).
"""

from __future__ import annotations

from typing import Any

from litestar import Response, get
from litestar.params import FromPath

from account_store.suggestions import FIELDS
from catalog_api.dashboard.visits import Guest
from catalog_api.live_catalog import LiveCatalog
from catalog_store.queries.evidence import Edge, Evidence

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
    known = await visit.desk.tables.do(_evidence, visit.service.live, track["id"])
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
