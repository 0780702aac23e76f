"""Bulk resolve: up to 100 codes, ids or names in one request, to tracks (specification 4.7, contract D), artists or releases."""

from __future__ import annotations

import asyncio

from account_store.api_keys import Caller
from account_store.ledger import Charge
from catalog_api.answers import Answer
from catalog_api.bulk_rows import RowResolver, build_body_schema, encode_results, encode_row, read_rows
from catalog_api.credit_prices import OF_ROWS, RESOLVED_ROW
from catalog_api.metering import BUILD_HEADER, PrepaidQuestion, Question
from catalog_api.parameters import ParameterValues
from catalog_api.request_bodies import Members
from catalog_api.route_declaration import post_route
from catalog_api.row_resolvers import ARTIST_ROWS, RELEASE_ROWS, TRACK_ROWS
from catalog_api.service import Service
from catalog_api.wire.matching_types import Resolved, ResolvedArtists, ResolvedReleases

_FAILURES = ("too_many_items", "idempotency_key_reused", "too_slow")


@post_route(
    "/v1/tracks/resolve",
    Resolved,
    tag="Tracks",
    summary="Bulk resolve",
    failures=_FAILURES,
    body=build_body_schema(TRACK_ROWS.forms),
    is_about_catalog=False,
    names_build=True,
    price=OF_ROWS,
    takes_idempotency_key=True,
)
def resolve(_values: ParameterValues, members: Members) -> Question:
    """Resolve up to 100 rows, for one credit each; `results[j]` answers `items[j]`.

    Rows are strings, or `{"artist", "title"}` where `input_type` is `track_name`. A malformed code is `not_found`, and so are names that
    search finds only as `possible`. When the month's credits run out, the remaining rows are `skipped_no_credits`; the batch does not fail.
    """
    return _ask(members, TRACK_ROWS)


@post_route(
    "/v1/artists/resolve",
    ResolvedArtists,
    tag="Artists",
    summary="Bulk resolve of artists",
    failures=_FAILURES,
    body=build_body_schema(ARTIST_ROWS.forms),
    is_about_catalog=False,
    names_build=True,
    price=OF_ROWS,
    takes_idempotency_key=True,
)
def resolve_artists(_values: ParameterValues, members: Members) -> Question:
    """Resolve up to 100 ids of artists, ours or a platform's, or names, for one credit each; as `/v1/tracks/resolve` otherwise.

    Merged ids lead to their survivor. Of several artists of a name the answer is the one with most tracks; `alternatives` names the others.
    """
    return _ask(members, ARTIST_ROWS)


@post_route(
    "/v1/releases/resolve",
    ResolvedReleases,
    tag="Releases",
    summary="Bulk resolve of releases",
    failures=_FAILURES,
    body=build_body_schema(RELEASE_ROWS.forms),
    is_about_catalog=False,
    names_build=True,
    price=OF_ROWS,
    takes_idempotency_key=True,
)
def resolve_releases(_values: ParameterValues, members: Members) -> Question:
    """Resolve up to 100 barcodes, ids of releases, ours or a platform's, or names, for one credit each; as `/v1/tracks/resolve` otherwise.

    Rows of `release_name` are `{"artist", "title"}`; case, accents and punctuation do not matter. Merged ids lead to their survivor. Of
    several releases the answer is the one with most tracks, then the earliest; `alternatives` names the others.
    """
    return _ask(members, RELEASE_ROWS)


def _ask(members: Members, resolver: RowResolver) -> Question:
    input_type, items = read_rows(members, resolver.forms)

    async def work(service: Service, _caller: Caller, charge: Charge) -> Answer:
        tried, templates = items[: charge.granted], service.settings.url_templates
        with service.live.hold() as catalog:
            if resolver.forms[input_type].is_searched:
                rows = []
                for item in tried:
                    rows += resolver.resolve(catalog, templates, input_type, [item])
                    await asyncio.sleep(0)  # a search takes milliseconds; let other requests run in between
            else:
                rows = resolver.resolve(catalog, templates, input_type, tried)
            build = catalog.snapshot_id
        rows += [encode_row(item, b"skipped_no_credits", resolver.skipped) for item in items[charge.granted :]]
        return Answer(encode_results(rows, charge, is_partial=charge.granted < len(items)), {BUILD_HEADER: build})

    return PrepaidQuestion(RESOLVED_ROW * len(items), work, is_partial=True, body=members.document)
