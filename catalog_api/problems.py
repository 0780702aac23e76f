"""The shape of all errors (RFC 9457 with our members) and the table of error codes.

Code that refuses a request raises `ApiError`; only this module builds error bodies. A new kind of failure gets a code in CODES, which
`/v1/errors` serves.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec
from litestar.exceptions import HTTPException

from account_store.errors import IdempotencyKeyReusedError, UnavailableError
from catalog_api.answers import NO_STORE, Answer
from catalog_store.errors import (
    BodyDamagedError,
    CatalogClosedError,
    DeadlineExceededError,
    IndexDamagedError,
    InvalidCursorError,
    InvalidQueryError,
    TablesAbsentError,
    TablesDamagedError,
    UnknownBuildError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


log = logging.getLogger("catalog_api")

PROBLEM_TYPE = "application/problem+json"
RETRY_SOON = {"retry-after": "5"}
"""Header of a 503."""
_IN_PATHS = "/:@!$&'()*+,;="
"""Characters that need no escape in the path of a URI reference (RFC 3986), which `instance` is."""


class Code(NamedTuple):
    """A stable error code: its status, and what a client does about it."""

    status: int
    title: str
    advice: str


CODES = {
    "missing_api_key": Code(401, "No API key", "Send your key in the x-api-key header."),
    "invalid_api_key": Code(401, "Unknown API key", "The key is unknown, revoked or expired: use a live one."),
    "plan_required": Code(403, "Paid plan required", "This route is part of the paid plans: change the plan of the account."),
    "payment_method_required": Code(403, "Payment card required", "Monitoring is paid per stream: have a payment card put on file first."),
    "scope_required": Code(403, "Scope required", "The key lacks a scope: use a key that has it, or create one."),
    "live_key_required": Code(403, "Live key required", "Test keys only read a small fixed catalog: use a live key."),
    "address_not_allowed": Code(403, "Address not allowed", "The key is limited to other addresses: send the request from one of those."),
    "bad_request": Code(400, "Bad request", "The request is not HTTP: check the client."),
    "invalid_parameter": Code(400, "Invalid parameter", "Correct the parameters listed in errors."),
    "invalid_cursor": Code(
        400, "Invalid cursor", "Use next_cursor exactly as it was answered, with the same query; else start without one."
    ),
    "invalid_body": Code(400, "Invalid body", "Send one JSON document in UTF-8 that names each member once."),
    "too_many_items": Code(400, "Too many items", "Send at most 100 items; make several requests of the rest."),
    "stream_limit": Code(403, "Too many streams", "The account has the maximum number of active streams: stop one first."),
    "job_limit": Code(403, "Too many jobs", "The account has as many unfinished jobs as its plan allows: wait for one, or cancel it."),
    "not_found": Code(404, "Not found", "There is no such path, or the catalog does not hold the requested item."),
    "build_not_kept": Code(410, "Build not kept", "Ask as of one of the builds in `builds`, or leave as_of out."),
    "method_not_allowed": Code(405, "Method not allowed", "Use one of the methods in the Allow header."),
    "not_acceptable": Code(406, "Not acceptable", "Accept application/json, or another of the types that the route is described with."),
    "request_timeout": Code(408, "Too slow", "Send the request faster: its head within seconds, its body without long pauses."),
    "stream_exists": Code(409, "Stream exists", "You monitor this address already: use the stream that stream_id names, or stop it first."),
    "stream_stopped": Code(409, "Stream stopped", "A stopped stream stays stopped: register its address again."),
    "job_unfinished": Code(409, "Job unfinished", "There is a result once the status of the job is succeeded."),
    "webhook_disabled": Code(409, "Webhook disabled", "Nothing is sent to it: set its status to enabled first."),
    "too_many_webhooks": Code(409, "Too many webhooks", "An account has at most 20: delete one first."),
    "idempotency_key_reused": Code(409, "Idempotency key in use", "The key belongs to another request of yours: use a new key."),
    "body_too_large": Code(413, "Body too large", "Send fewer or shorter items; of audio a shorter clip, or its fingerprint."),
    "unsupported_media_type": Code(
        415, "Unsupported media type", "Send the body as application/json in UTF-8, or as a type that the route is described with."
    ),
    "unsupported_audio": Code(415, "Unsupported audio", "Send mp3, flac, wav, m4a, mp4, ogg or opus, or the audio's fingerprint."),
    "undecodable_audio": Code(415, "Undecodable audio", "The file cannot be decoded: send it complete and undamaged. Nothing was charged."),
    "headers_too_large": Code(431, "Head too large", "Send fewer and shorter header fields, and a shorter path."),
    "rate_limited": Code(429, "Too many requests", "Wait for the seconds in Retry-After; RateLimit-Policy holds the plan's rate."),
    "quota_exceeded": Code(429, "Credits used up", "Wait until resets_at, or take a larger plan. Nothing was done or charged."),
    "internal_error": Code(500, "Internal error", "A fault of the server, free of charge. Quote request_id when you report it."),
    "jobs_unavailable": Code(503, "Jobs unavailable", "The server cannot store the input: try again later. Nothing was charged."),
    "accounts_unavailable": Code(503, "Accounts unavailable", "Keys and credits cannot be looked up: try again later."),
    "secrets_unavailable": Code(
        503, "Secrets unavailable", "The key that seals webhook secrets is missing: the operator must put it back."
    ),
    "overloaded": Code(503, "Server busy", "The server has its maximum of connections: use those you have, or try again later."),
    "catalog_unavailable": Code(503, "Catalog unavailable", "No catalog is published yet or it cannot be opened: try again later."),
    "recognition_unavailable": Code(
        503, "Recognition unavailable", "Send the same request again after Retry-After seconds. Nothing was charged."
    ),
    "provenance_unavailable": Code(
        503, "Provenance unavailable", "This server holds no tables to read provenance from: leave `provenance` out of include."
    ),
    "too_slow": Code(503, "Took too long", "The request was stopped at its deadline, free of charge: request less, or try again later."),
}

# Errors that the framework itself raises: unknown paths and methods, mostly.
_BY_STATUS = {404: "not_found", 405: "method_not_allowed", 415: "unsupported_media_type", 400: "invalid_parameter", 413: "body_too_large"}


@dataclass(frozen=True)
class ParameterProblem:
    """A fault in one parameter; `place` is path, query, header or body (`in` on the wire)."""

    place: str
    name: str
    message: str


class ApiError(Exception):
    """A request that gets a problem document as its answer."""

    def __init__(
        self,
        code: str,
        detail: str,
        problems: tuple[ParameterProblem, ...] = (),
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, object] | None = None,
    ) -> None:
        """`code` is a key of CODES; `members` are added to the document."""
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.problems = problems
        self.headers = dict(headers or {})
        self.members = dict(members or {})


def render_problem(scope: Any, error: Exception) -> Answer:  # noqa: ANN401 - any ASGI scope
    """Render any error as a problem document. An unexpected one is logged with its trace and answered as a 500 without details."""
    known = _translate_error(error)
    if known is None:
        log.error("unhandled error", exc_info=error, extra={"request_id": read_request_id(scope)})
        # The text of an unexpected error may name files, hosts or rows.
        known = ApiError("internal_error", "The request could not be answered.")
    code = CODES[known.code]
    scope.setdefault("state", {})["code"] = known.code
    body: dict[str, object] = {
        "type": f"/v1/errors#{known.code}",
        "title": code.title,
        "status": code.status,
        "detail": known.detail,
        "instance": quote(scope["path"], safe=_IN_PATHS),
        "code": known.code,
        "request_id": read_request_id(scope),
        **known.members,
    }
    if known.problems:
        body["errors"] = [{"in": one.place, "name": one.name, "message": one.message} for one in known.problems]
    # A cache must not keep an error beyond its cause.
    headers = {"cache-control": NO_STORE} | {name.lower(): value for name, value in known.headers.items()}
    return Answer(msgspec.json.encode(body), headers, status=code.status, media_type=PROBLEM_TYPE)


_OF_STORES: dict[type[Exception], str] = {
    InvalidCursorError: "invalid_cursor",
    InvalidQueryError: "invalid_parameter",
    UnknownBuildError: "not_found",
    DeadlineExceededError: "too_slow",
    CatalogClosedError: "catalog_unavailable",
    TablesAbsentError: "provenance_unavailable",
    IdempotencyKeyReusedError: "idempotency_key_reused",
}


_DAMAGES: dict[type[Exception], tuple[str, str]] = {
    BodyDamagedError: ("catalog_unavailable", "The stored record is damaged on the server."),
    IndexDamagedError: ("catalog_unavailable", "An index of the catalog is damaged on the server."),
    TablesDamagedError: ("provenance_unavailable", "The tables are damaged on the server."),
}


def _translate_error(error: Exception) -> ApiError | None:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, UnavailableError):
        log.warning("accounts do not answer: %s", error)  # the reason names internal hosts, so callers do not get it
        return ApiError("accounts_unavailable", "The database of the accounts does not answer.", headers=RETRY_SOON)
    if type(error) in _DAMAGES:
        log.error("the live snapshot is damaged: %s", error)  # the reason names files, so callers do not get it
        return ApiError(*_DAMAGES[type(error)], headers=RETRY_SOON)
    # The exact type: a new subclass must get a code of its own before its text goes to callers.
    if type(error) in _OF_STORES:
        code = _OF_STORES[type(error)]
        detail = str(error)[0].upper() + str(error)[1:] + "."
        return ApiError(code, detail, headers=RETRY_SOON if CODES[code].status == HTTPStatus.SERVICE_UNAVAILABLE else {})
    if isinstance(error, HTTPException) and error.status_code in _BY_STATUS:
        return _translate_framework_error(error)
    return None


def _translate_framework_error(error: HTTPException) -> ApiError:
    """Translate an error of the framework: mostly an unknown path or method."""
    code = _BY_STATUS[error.status_code]
    if code == "method_not_allowed":
        methods = set((error.headers or {}).get("allow", "").split(", ")) - {"", "OPTIONS"}
        # HEAD works wherever GET does (middleware/authentication.py).
        allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
        return ApiError(code, f"This path answers {allowed} only.", headers={"allow": allowed})
    return ApiError(code, "There is no such path." if code == "not_found" else error.detail or HTTPStatus(error.status_code).phrase)


def read_request_id(scope: Any) -> str:  # noqa: ANN401 - any ASGI scope
    """Return the id of the request, which middleware/request_tracking.py sets."""
    return str(scope.get("state", {}).get("request_id", ""))
