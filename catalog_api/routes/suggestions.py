"""Suggested corrections: callers propose, an operator decides, the next build applies (specification 4.13, contract F6)."""

from __future__ import annotations

import asyncio

from account_store.api_keys import Caller
from account_store.ledger import Charge
from account_store.suggestions import FIELDS, LONGEST_NOTE, LONGEST_VALUE
from account_store.suggestions import Suggestion as StoredSuggestion
from catalog_api.answers import Answer, encode_answer
from catalog_api.credit_prices import OF_SUGGESTION, SUGGESTION
from catalog_api.metering import PrepaidQuestion, Question, format_timestamp
from catalog_api.parameters import CURSOR, LIMIT, TRACK_ID, URL_PATTERN, VISIBLE, ParameterValues
from catalog_api.problems import ApiError
from catalog_api.request_bodies import Members
from catalog_api.route_declaration import get_route, post_route
from catalog_api.routes.tracks import find_body
from catalog_api.service import Service
from catalog_api.wire.account_types import Suggestion, SuggestionPage
from catalog_store.cursors import CursorCodec, Place

_FEATURE = "suggestions"
_BODY = {
    "type": "object",
    "required": ["field", "value"],
    "properties": {
        "field": {"type": "string", "enum": list(FIELDS)},
        "value": {"type": "string", "minLength": 1, "maxLength": LONGEST_VALUE, "pattern": rf"^[^\x00]*{VISIBLE}[^\x00]*$"},
        "note": {"type": ["string", "null"], "maxLength": LONGEST_NOTE, "pattern": r"^[^\x00]*$"},
        "source_url": {"type": ["string", "null"], "maxLength": LONGEST_NOTE, "pattern": URL_PATTERN},
    },
}
_CURSORS = CursorCodec()


@post_route(
    "/v1/tracks/{id:str}/suggestions",
    Suggestion,
    tag="Suggestions",
    summary="Suggest a correction",
    is_live_only=True,
    parameters=(TRACK_ID,),
    failures=("not_found", "idempotency_key_reused"),
    feature=_FEATURE,
    price=OF_SUGGESTION,
    is_about_catalog=False,
    body=_BODY,
    takes_idempotency_key=True,
)
def suggest(values: ParameterValues, members: Members) -> Question:
    """Propose another value for a field of the track; an operator decides. In the next build an approved genre overrides all sources."""
    field = members.read_choice("field", FIELDS)
    value = members.read_text("value", LONGEST_VALUE)
    note = members.read_optional_text("note", LONGEST_NOTE)
    source_url = members.read_optional_text("source_url", LONGEST_NOTE, pattern=URL_PATTERN)
    members.check()

    async def work(service: Service, caller: Caller, _charge: Charge) -> Answer:
        with service.live.hold() as catalog:
            track_id, _ = find_body(catalog, values[TRACK_ID])
        create = service.accounts.suggestions.create
        made = await asyncio.to_thread(create, caller.account_id, track_id, field, value, note=note, source_url=source_url)
        return encode_answer(_build_suggestion(made))

    return PrepaidQuestion(SUGGESTION, work, body=members.document)


@get_route(
    "/v1/tracks/{id:str}/suggestions",
    SuggestionPage,
    tag="Suggestions",
    summary="Your suggestions for a track",
    is_live_only=True,
    parameters=(TRACK_ID, LIMIT, CURSOR),
    failures=("not_found", "invalid_cursor"),
    feature=_FEATURE,
    price=OF_SUGGESTION,
    is_about_catalog=False,
)
def suggestions_of_track(values: ParameterValues) -> Question:
    """Return the account's suggestions for the track, oldest first. Suggestions for a merged id appear under its survivor too."""
    return _list_suggestions(values, values[TRACK_ID])


@get_route(
    "/v1/suggestions",
    SuggestionPage,
    tag="Suggestions",
    summary="Your suggestions",
    is_live_only=True,
    parameters=(LIMIT, CURSOR),
    failures=("invalid_cursor",),
    feature=_FEATURE,
    price=OF_SUGGESTION,
    is_about_catalog=False,
)
def suggestions(values: ParameterValues) -> Question:
    """Return the account's suggestions, oldest first."""
    return _list_suggestions(values, None)


def _list_suggestions(values: ParameterValues, track_id: int | None) -> Question:
    async def work(service: Service, caller: Caller, _charge: Charge) -> Answer:
        query = ("suggestions", str(caller.account_id), str(track_id))
        cursor = values[CURSOR]
        after = 0 if cursor is None else _CURSORS.decode(query, cursor).id
        page, limit = service.accounts.suggestions.read_page, values[LIMIT]
        ids, unknown = ((), None) if track_id is None else _find_ids(service, track_id)
        found = await asyncio.to_thread(page, account_id=caller.account_id, track_ids=ids, limit=limit + 1, after=after)
        # A track that left the catalog keeps its suggestions; one that never was is a 404.
        if unknown is not None and not found and cursor is None:
            raise unknown
        more = len(found) > limit
        following = _CURSORS.encode(query, Place(0, 0, found[limit - 1].suggestion_id)) if more else None
        return encode_answer(SuggestionPage([_build_suggestion(one) for one in found[:limit]], following))

    # No lookup: it waits for the database of the accounts.
    return PrepaidQuestion(SUGGESTION, work)


def _find_ids(service: Service, track_id: int) -> tuple[tuple[int, ...], ApiError | None]:
    """Return the ids under which suggestions may be stored; for an unknown track also its error, because the track may have had some."""
    try:
        with service.live.hold() as catalog:
            # Suggestions keep the id that they were made for; after a merge both ids count.
            return (track_id, find_body(catalog, track_id)[0]), None
    except ApiError as unknown:
        return (track_id,), unknown


def _build_suggestion(one: StoredSuggestion) -> Suggestion:
    return Suggestion(
        one.suggestion_id, one.status, one.track_id, one.field, one.value, one.note, one.source_url, format_timestamp(one.created_at)
    )
