"""The OpenAPI 3.1 description of `/v1`, generated from the declarations of the routes (contract A1).

This module adds what a declaration implies: the codes that every route can answer, the headers, the plans. Schemas come from the wire
types. Out of scope: any single route, and examples (reference/examples.py).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from account_store.key_rights import READ
from catalog_api.parameters import add_platform_parameters
from catalog_api.problems import CODES, PROBLEM_TYPE
from catalog_api.reference.examples import add_examples
from catalog_api.route_declaration import build_path_template
from catalog_api.wire.catalog_types import PlatformLink
from catalog_api.wire.event_messages import EVENT_DATA
from catalog_api.wire.service_types import Problem, QuotaProblem
from catalog_store.platforms import PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from account_store.plans import PlanTable
    from catalog_api.parameters import Parameter
    from catalog_api.route_declaration import Route
    from catalog_store.platform_files import Platform

API_VERSION = "1.0.0"
"""The version of the machine-readable description (specification, part 9)."""

_ALWAYS = (
    *(
        "missing_api_key",
        "invalid_api_key",
        "address_not_allowed",
        "scope_required",
        "invalid_parameter",
        "rate_limited",
        "internal_error",
        "catalog_unavailable",
    ),
    *("accounts_unavailable", "request_timeout", "headers_too_large"),
)
_METERED = ("quota_exceeded",)
_WITH_BODY = ("invalid_body", "body_too_large", "unsupported_media_type")
_HEADER_SCHEMAS = {"Idempotency-Key": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^\S+$"}}
# The value goes into the first parameter that the other operation declares.
_FOLLOWED_BY: dict[str, dict[str, tuple[str, str]]] = {
    "Track": {
        "": ("track_by_id", "/id"),
        "Links": ("links", "/id"),
        "Iswcs": ("iswcs_of_track", "/id"),
        "Code": ("track_by_isrc", "/isrc"),
    },
    "TrackPage": {"": ("track_by_id", "/results/0/id"), "Release": ("release", "/results/0/releases/0/id")},
    "TrackLinks": {"": ("track_by_id", "/track_id")},
    "TrackIswcs": {"": ("tracks_of_iswc", "/iswcs/0/iswc")},
    "WorkRecordings": {"": ("track_by_id", "/recordings/0/sonovault_id")},
    "ResolvedArtists": {"": ("artist", "/results/0/artist/id")},
    "ResolvedReleases": {"": ("release", "/results/0/release/id")},
    "ReleasePage": {"": ("release", "/results/0/id"), "Artist": ("artist", "/results/0/artist/id")},
    "Release": {"Artist": ("artist_releases", "/artist/id"), "Track": ("track_by_id", "/tracks/0/id")},
    "ArtistPage": {"": ("artist", "/results/0/id"), "Releases": ("artist_releases", "/results/0/id")},
    "LabelPage": {"": ("label", "/results/0/id"), "Releases": ("label_releases", "/results/0/id")},
    "Artist": {"Releases": ("artist_releases", "/id")},
    "Label": {"Releases": ("label_releases", "/id")},
    "Job": {"": ("job", "/id"), "Result": ("job_result", "/id"), "Cancel": ("cancel_job", "/id")},
    "IsrcConflictPage": {"": ("track_by_id", "/results/0/kept_by/id")},
    "Suggestion": {"": ("suggestions_of_track", "/track_id")},
    "NewWebhook": {"": ("webhook", "/id"), "Deliveries": ("webhook_deliveries", "/id"), "Ping": ("ping_webhook", "/id")},
    "WebhookList": {"": ("webhook", "/results/0/id")},
    "Changes": {"": ("changes", "/build")},
}
"""OpenAPI links by type of answer: the operation that follows, and where the answer holds its first parameter."""
_TAGS = {
    "Tracks": "Search, lookups by id and code, links to platforms, recognition of audio.",
    "Artists": "Artists by name and id, and their releases.",
    "Labels": "Labels by name and id, and their releases.",
    "Releases": "Releases by barcode and id with their tracks, and new releases.",
    "Genres": "The tree of genres.",
    "Jobs": "Bulk resolve of up to a million rows.",
    "Suggestions": "Corrections that you propose.",
    "Streams": "Radio streams, what is on them, and the airplay report.",
    "Webhooks": "Addresses of yours that receive events.",
    "Changes": "Ids that were merged, split, removed or restored.",
    "Account": "Credits and rate.",
}
_MESSAGE_HEADERS = {
    "webhook-id": ("The id of the event. A repeat has the same one.", "msg_6f1f3d0d0f9b4a0ab8f0f3a5f2f7d6c1"),
    "webhook-timestamp": ("The time of this attempt, in seconds since 1970. Refuse one that is over five minutes off.", "1795262405"),
    "webhook-signature": (
        "Signatures, separated by blanks: `v1,` and HMAC-SHA256 of `id.timestamp.body` in base64.",
        "v1,K5oZfzN95Z9UVu1EsfQ=",
    ),
}
_SCHEMA_PLACE = "#/components/schemas/{name}"

_HEADERS = {
    "X-Request-Id": "The id of this request in our logs: the caller's, or one of ours.",
    "RateLimit-Policy": "The burst of requests (`q`), and the seconds in which it refills (`w`).",
    "RateLimit": "Requests left (`r`), and the seconds until there are more (`t`).",
    "X-Credits-Used": "Credits that this answer cost.",
    "X-Credits-Remaining": "Credits left this month.",
    "X-Catalog-Build": "The build that answered, as `/v1/changes` names builds.",
    "ETag": "Changes only with the answer. Send it as If-None-Match for a 304, which is free.",
    "Content-Encoding": "`zstd` or `gzip` by Accept-Encoding, of answers of 1 kB or more.",
    "Cache-Control": "How long the answer may be kept.",
    "Content-Location": "The path of the survivor of a merged id.",
    "Retry-After": "Seconds to wait.",
}


def build_description(routes: Sequence[Route], plans: PlanTable, platforms: Mapping[str, Platform] = PLATFORMS) -> dict[str, Any]:
    """Return the document; `platforms` are those of the snapshot that answers."""
    routes = [
        replace(
            route,
            parameters=add_platform_parameters(route.parameters, platforms),
            exactly_one=add_platform_parameters(route.exactly_one, platforms),
        )
        for route in routes
    ]
    events = {data for data, _ in EVENT_DATA.values()}
    wire: set[type[msgspec.Struct]] = {Problem, QuotaProblem, *events, *(route.answers for route in routes)}
    # A set has no order; the document must not change between processes.
    types = sorted(wire, key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(types, ref_template=_SCHEMA_PLACE)
    if link := schemas.get(PlatformLink.__name__):
        link["properties"]["source"]["enum"] = list(platforms)
    paths: dict[str, Any] = {}
    # A link names the parameter of the operation that it leads to.
    first = {route.name: _build_parameter_key(route.parameters[0]) for route in routes if route.parameters}
    for route in routes:
        paths.setdefault(build_path_template(route.path), {})[route.method.lower()] = _describe_operation(route, first, plans)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Music metadata service", "version": API_VERSION, "description": _build_introduction(plans)},
        "servers": [{"url": "/"}],
        "security": [{"apiKey": []}],
        "tags": [{"name": tag, "description": _TAGS.get(tag, tag)} for tag in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "webhooks": {event_type: _describe_event(event_type) for event_type in EVENT_DATA},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"apiKey": {"type": "apiKey", "name": "x-api-key", "in": "header"}},
            "headers": {name: {"description": text, "schema": {"type": "string"}} for name, text in _HEADERS.items()},
        },
    }
    add_examples(document)
    return document


def _build_introduction(plans: PlanTable) -> str:
    rows = "\n".join(
        f"| {plan.name} | {plan.price_eur} EUR | {plan.yearly_price_eur} EUR | {plan.credits} | {plan.requests_per_second} | {plan.burst} |"
        for plan in plans.plans.values()
    )
    return (
        "Factual music metadata, read-only. Send your key as `x-api-key`. A 200, or a 404 of a well-formed lookup, costs one"
        " credit; 304, other 4xx and 5xx cost nothing.\n\n"
        "| plan | a month | a year | credits a month | requests a second | at once |\n|---|---|---|---|---|---|\n" + rows
    )


def _describe_event(event_type: str) -> dict[str, Any]:
    """Describe a message that the account's webhooks receive."""
    data, when = EVENT_DATA[event_type]
    members = {
        "type": {"type": "string", "const": event_type},
        "timestamp": {"type": "string", "format": "date-time"},
        "data": {"$ref": _SCHEMA_PLACE.format(name=data.__name__)},
    }
    schema = {"type": "object", "required": list(members), "properties": members}
    headers = [
        {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": "string"}, "example": example}
        for name, (text, example) in _MESSAGE_HEADERS.items()
    ]
    return {
        "post": {
            "operationId": f"receive_{event_type.replace('.', '_')}",
            "tags": ["Webhooks"],
            "summary": when,
            "description": f"{when} The receiver answers 2xx soon, and expects the same `webhook-id` twice.",
            "security": [],
            "parameters": headers,
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
            "responses": {
                "2XX": {"description": "The receiver has the event."},
                "410": {"description": "The receiver wants no more events: the webhook is disabled."},
                "default": {"description": "The event is sent again, ten times in all over three days."},
            },
        }
    }


def _describe_operation(route: Route, first: Mapping[str, str], plans: PlanTable) -> dict[str, Any]:
    operation: dict[str, Any] = {
        # Callers generate clients from these ids, so the names of handlers are part of the interface.
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "description": " ".join(line.strip() for line in route.description.strip().splitlines()),
        # OpenAPI describes headers by media types and security, not as parameters.
        "parameters": [
            *(_describe_parameter(one, route) for one in route.parameters if one.place != "header"),
            *_describe_header_parameters(route),
        ],
        "responses": _describe_responses(route, first),
        "x-credits": route.stated_price.describe(),
        "x-plan": _describe_plans(route, plans),
    }
    if route.deprecation:
        operation["deprecated"] = True
    if route.feature:
        operation["description"] += " Part of the paid plans."
    if route.needs_card:
        operation["description"] += " The account needs a payment card on file."
    if route.body is not None:
        others = {other: {"schema": {"type": "string", "format": "binary"}} for other in route.other_bodies}
        operation["requestBody"] = {
            "required": route.needs_body,
            "content": {"application/json": {"schema": deepcopy(route.body)}, **others},
        }
    return operation


def _describe_plans(route: Route, plans: PlanTable) -> dict[str, Any]:
    """Name the plans of the callers that may use the route, and the feature of a plan that it needs."""
    names = [name for name in plans.names if name in plans.agreed or not route.feature or plans.plans[name].has_feature(route.feature)]
    return {"plans": names, **({"feature": route.feature} if route.feature else {}), **({"needs_card": True} if route.needs_card else {})}


def _describe_parameter(parameter: Parameter[Any], route: Route) -> dict[str, Any]:
    text = parameter.description
    if parameter in route.exactly_one:
        text += " Send exactly one of " + ", ".join(f"`{one.name}`" for one in route.exactly_one) + "."
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.is_required,
        "description": text,
        "schema": parameter.schema,
    }


def _build_parameter_key(parameter: Parameter[Any]) -> str:
    return f"{parameter.place}.{parameter.name}"


def _describe_header_parameters(route: Route) -> list[dict[str, Any]]:
    headers = {"If-None-Match": "ETag of the answer that you hold."} if route.is_about_catalog else {}
    if route.takes_idempotency_key:
        headers["Idempotency-Key"] = "For 24 hours, repeats under the same key get the first answer and are not charged."
    return [
        {"name": name, "in": "header", "required": False, "description": text, "schema": _HEADER_SCHEMAS.get(name, {"type": "string"})}
        for name, text in headers.items()
    ]


def _describe_responses(route: Route, first: Mapping[str, str]) -> dict[str, Any]:
    codes = [*_ALWAYS, *(() if route.is_free else _METERED), *(_WITH_BODY if route.body is not None else ()), *route.failures]
    if route.feature:
        codes.append("plan_required")
    if route.is_live_only or route.key_scope != READ:
        codes.append("live_key_required")
    if route.needs_card:
        codes.append("payment_method_required")
    if route.other_types and not route.is_file:
        codes.append("not_acceptable")
    always = ["X-Request-Id", "RateLimit-Policy", "RateLimit", "Cache-Control", "Content-Encoding"]
    metered = [*always, *([] if route.is_free else ["X-Credits-Used", "X-Credits-Remaining"])]
    validated = ["ETag"] if route.is_about_catalog else []
    if route.is_about_catalog or route.names_build:
        validated.append("X-Catalog-Build")
    json_answer = {"application/json": {"schema": {"$ref": _SCHEMA_PLACE.format(name=route.answers.__name__)}}}
    answer: dict[str, Any] = {} if route.is_file else json_answer
    answer |= {other: {} for other in route.other_types}
    responses: dict[str, Any] = {"200": _describe_response("The answer.", answer, [*metered, *validated])}
    responses["200"]["links"] = {
        f"{operation}{name and 'By'}{name}": {"operationId": operation, "parameters": {first[operation]: f"$response.body#{place}"}}
        for name, (operation, place) in _FOLLOWED_BY.get(route.answers.__name__, {}).items()
    }
    if route.is_about_catalog:
        responses["304"] = _describe_response("Your copy is current. Free.", None, [*metered, *validated])
    for status in sorted({CODES[code].status for code in codes}):
        of_status = [code for code in dict.fromkeys(codes) if CODES[code].status == status]
        problem = QuotaProblem if "quota_exceeded" in of_status else Problem
        content = {PROBLEM_TYPE: {"schema": {"$ref": _SCHEMA_PLACE.format(name=problem.__name__)}}}
        text = " ".join(f"`{code}`: {CODES[code].advice}" for code in of_status)
        responses[str(status)] = _describe_response(text, content, ["X-Request-Id", *(["Retry-After"] if status in _WAITS else [])])
        responses[str(status)]["x-codes"] = of_status
    return responses


_WAITS = frozenset({429, 503})


def _describe_response(text: str, content: Mapping[str, Any] | None, headers: Sequence[str]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": text, "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers}}
    if content is not None:
        response["content"] = content
    return response
