"""The one shape of an error (RFC 9457 with our members) and the one table of error codes.

Handlers raise `ApiError`; nobody else builds an error body. Add a code to CODES when a new way to fail appears; `/v1/errors` serves it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

log = logging.getLogger("catalog_api")

PROBLEM_TYPE = "application/problem+json"


class Code(NamedTuple):
    """A stable error code: its status and what a client does about it."""

    status: int
    title: str
    advice: str


CODES = {
    "missing_api_key": Code(401, "No API key", "Send your key in the x-api-key header."),
    "invalid_api_key": Code(401, "Unknown API key", "The key is unknown or revoked: use a live one."),
    "invalid_parameter": Code(400, "Invalid parameter", "Correct the parameters listed in errors."),
    "invalid_cursor": Code(
        400, "Invalid cursor", "Use next_cursor exactly as it was answered, with the same query; else start without one."
    ),
    "not_found": Code(404, "Not found", "There is no such path, or the catalog does not hold what was asked for."),
    "method_not_allowed": Code(405, "Method not allowed", "Use one of the methods in the Allow header."),
    "unsupported_media_type": Code(415, "Unsupported media type", "Send the body as the documented Content-Type."),
    "internal_error": Code(500, "Internal error", "Our fault. Quote request_id when you report it."),
    "catalog_unavailable": Code(503, "Catalog unavailable", "No catalog is published yet or it cannot be opened: try again later."),
}

_BY_STATUS = {404: "not_found", 405: "method_not_allowed", 415: "unsupported_media_type", 400: "invalid_parameter"}


@dataclass(frozen=True)
class ParameterProblem:
    """What is wrong with one parameter; `place` is path, query, header or body (`in` on the wire)."""

    place: str
    name: str
    message: str


class ApiError(Exception):
    """A request that is answered with a problem document."""

    def __init__(self, code: str, detail: str, problems: tuple[ParameterProblem, ...] = (), headers: dict[str, str] | None = None) -> None:
        """`code` is a key of CODES."""
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.problems = problems
        self.headers = headers or {}


def render(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Any error as a problem document; what we did not foresee is logged with its trace and told as a 500 without inner details."""
    known = _as_api_error(error)
    if known is None:
        log.error("unhandled error", exc_info=error, extra={"request_id": request_id(request)})
        known = ApiError("internal_error", "The request could not be answered.")
    code = CODES[known.code]
    body: dict[str, object] = {
        "type": f"/v1/errors#{known.code}",
        "title": code.title,
        "status": code.status,
        "detail": known.detail,
        "instance": request.url.path,
        "code": known.code,
        "request_id": request_id(request),
    }
    if known.problems:
        body["errors"] = [{"in": problem.place, "name": problem.name, "message": problem.message} for problem in known.problems]
    return Response(msgspec.json.encode(body), status_code=code.status, media_type=PROBLEM_TYPE, headers=known.headers)


def _as_api_error(error: Exception) -> ApiError | None:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException) and error.status_code in _BY_STATUS:
        headers = {"Allow": error.headers["allow"]} if error.headers and "allow" in error.headers else {}
        return ApiError(_BY_STATUS[error.status_code], error.detail or HTTPStatus(error.status_code).phrase, headers=headers)
    return None


def request_id(request: Request[Any, Any, Any]) -> str:
    """The id under which this request is logged; set by the request-id middleware."""
    return str(request.scope.get("state", {}).get("request_id", ""))
