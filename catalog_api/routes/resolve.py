"""Bulk resolve: up to 100 codes, platform ids or names in one request (specification 4.7, contract D)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from account_store.api_keys import Caller
from account_store.ledger import Charge
from catalog_api.answers import Answer
from catalog_api.credit_prices import RESOLVED_ROW
from catalog_api.metering import PrepaidQuestion, Question
from catalog_api.parameters import TEXT_CHARACTERS, VISIBLE, ParameterValues, normalise_external_id
from catalog_api.platform_urls import build_links
from catalog_api.problems import ApiError
from catalog_api.request_bodies import Members
from catalog_api.route_declaration import post_route
from catalog_api.service import Service
from catalog_api.wire.catalog_types import Match
from catalog_api.wire.matching_types import Resolved
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.reader import Catalog

MOST_ITEMS = 100
"""Specification, part 8."""
BY_ISRC, BY_NAME = "isrc", "track_name"
BY_PLATFORM = {f"{platform}_id": platform for platform in CATALOG_PLATFORMS}
LEAST_CLASS = "fuzzy"
"""The lowest class of a search answer that counts as matched."""
INPUT_TYPES = (BY_ISRC, BY_NAME, *BY_PLATFORM)
SKIPPED_MESSAGE = "The credits of the month ran out: rows with status skipped_no_credits were not tried."

_TEXT = {"type": "string", "minLength": 1, "maxLength": TEXT_CHARACTERS, "pattern": rf"^[^\x00]*{VISIBLE}[^\x00]*$"}
_NAME = {"type": "object", "required": ["artist", "title"], "properties": {"artist": _TEXT, "title": _TEXT}}
_BODY = {
    "oneOf": [
        {
            "type": "object",
            "required": ["input_type", "items"],
            "properties": {
                "input_type": {"type": "string", "enum": kinds},
                "items": {"type": "array", "minItems": 1, "maxItems": MOST_ITEMS, "items": row},
            },
        }
        for kinds, row in (
            ([BY_ISRC, *BY_PLATFORM], {"type": "string"}),
            ([BY_NAME], _NAME),
        )
    ]
}


class _Found(msgspec.Struct):
    """The track of each row, and how well it matches where it was searched for."""

    ids: list[int | None]
    matches: list[Match | None]


@post_route(
    "/v1/tracks/resolve",
    Resolved,
    tag="Tracks",
    summary="Bulk resolve",
    failures=("too_many_items", "idempotency_key_reused", "too_slow"),
    body=_BODY,
    is_about_catalog=False,
    takes_idempotency_key=True,
)
def resolve(_values: ParameterValues, members: Members) -> Question:
    """Resolve up to 100 rows, for one credit each; `results[j]` answers `items[j]`.

    Rows are strings, or `{"artist", "title"}` where `input_type` is `track_name`. A malformed code is `not_found`, and so are names that
    search finds only as `possible`. When the month's credits run out, the remaining rows are `skipped_no_credits`; the batch does not fail.
    """
    # A malformed row is the caller's error, a malformed code is not: it is that row's not_found (contract D1).
    input_type, items = _read(members)

    async def work(service: Service, _caller: Caller, charge: Charge) -> Answer:
        with service.live.hold() as catalog:
            tried = items[: charge.granted]
            found = await _BY_TYPE[input_type](catalog, input_type, tried)
            # One read for all rows (contract D4); a repeated track is read once.
            slim = catalog.read_slim_bodies([one for one in dict.fromkeys(found.ids) if one is not None])
        templates = service.settings.url_templates
        rows = []
        for item, track_id, match in zip(tried, found.ids, found.matches, strict=True):
            track = None if track_id is None else slim.get(track_id)
            if track is None:
                rows.append(_encode_row(item, b"not_found"))
            else:
                fits = b"" if match is None else b',"match":' + msgspec.json.encode(match)
                links = msgspec.json.encode(build_links(track.links, templates))
                rows.append(b'%s,"links":%s,"track":%s%s}' % (_encode_row(item, b"matched", is_open=True), links, track.body, fits))
        rows += [_encode_row(item, b"skipped_no_credits") for item in items[charge.granted :]]
        return Answer(_encode_document(rows, charge, is_partial=charge.granted < len(items)))

    return PrepaidQuestion(RESOLVED_ROW * len(items), work, is_partial=True, body=members.document)


def _encode_row(item: object, status: bytes, *, is_open: bool = False) -> bytes:
    return b'{"input":%s,"status":"%s"%s' % (msgspec.json.encode(item), status, b"" if is_open else b',"links":[]}')


def _encode_document(rows: Sequence[bytes], charge: Charge, *, is_partial: bool) -> bytes:
    message = msgspec.json.encode(SKIPPED_MESSAGE if is_partial else None)
    return b'{"results":[%s],"partial":%s,"processed":%d,"credits_used":%d,"credits_remaining":%d,"message":%s}' % (
        b",".join(rows),
        b"true" if is_partial else b"false",
        charge.granted,
        charge.granted,
        charge.remaining,
        message,
    )


def _read(members: Members) -> tuple[str, list[object]]:
    input_type = members.read_choice("input_type", INPUT_TYPES)
    items = members.read_array("items")
    if len(items) > MOST_ITEMS:
        # Too many items alone has a code of its own; beside other problems it is one of them.
        if not members.list_problems():
            raise ApiError("too_many_items", f"The request has {len(items)} items: at most {MOST_ITEMS} are allowed.")
        members.add_problem("items", f"must hold at most {MOST_ITEMS} items, got {len(items)}")
    if members.read_value("items") == []:
        members.add_problem("items", "must hold at least one item")
    for number, item in enumerate(items[:MOST_ITEMS]):
        name = f"items[{number}]"
        if input_type == BY_NAME:
            row = members.add_part(name, item)
            row.read_text("artist", TEXT_CHARACTERS)
            row.read_text("title", TEXT_CHARACTERS)
        elif input_type in INPUT_TYPES:
            if not isinstance(item, str):
                members.add_problem(name, "must be a string")
        elif not isinstance(item, str | dict):
            members.add_problem(name, "must be a string, or an object with artist and title")
    members.check()
    return input_type, items


async def _find_by_isrc(catalog: Catalog, _input_type: str, items: list[str]) -> _Found:
    found = catalog.find_ids_by_isrcs(items)
    return _build_unscored([found.get(item) for item in items])


async def _find_by_platform(catalog: Catalog, input_type: str, items: list[str]) -> _Found:
    platform = BY_PLATFORM[input_type]
    spellings = {item: spelling for item in items if (spelling := _read_spelling(platform, item))}
    # An id in two spellings is looked up once.
    found = catalog.find_ids_by_externals(platform, list(dict.fromkeys(spellings.values())))
    return _build_unscored([next(iter(found.get(spellings.get(item, ""), ())), None) for item in items])


def _read_spelling(platform: str, item: str) -> str | None:
    try:
        return normalise_external_id(platform, item)
    except ValueError:
        return None


def _build_unscored(ids: list[int | None]) -> _Found:
    return _Found(ids, [None] * len(ids))


async def _search_by_name(catalog: Catalog, _input_type: str, items: list[dict[str, str]]) -> _Found:
    found = _Found([], [])
    for item in items:
        # An answer that is only possible is no match: nobody looks at each row of a batch.
        hit = next(iter(catalog.search(artist=item["artist"], title=item["title"], limit=1, min_class=LEAST_CLASS).hits), None)
        found.ids.append(None if hit is None else hit.id)
        found.matches.append(None if hit is None else Match(hit.score, hit.match_class, list(hit.reasons)))
        await asyncio.sleep(0)  # a search takes milliseconds; let other requests run in between
    return found


_BY_TYPE: dict[str, Callable[..., Awaitable[_Found]]] = {
    BY_ISRC: _find_by_isrc,
    BY_NAME: _search_by_name,
    **dict.fromkeys(BY_PLATFORM, _find_by_platform),
}
