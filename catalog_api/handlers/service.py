"""What the service says about itself: its error codes and whether it can answer. Open to all: no key, no catalog data."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get
from litestar.serialization import encode_json

from catalog_api.answers import JSON, answer
from catalog_api.live_catalog import LiveCatalog
from catalog_api.middleware import OPEN_TO_ALL
from catalog_api.problems import CODES
from catalog_api.wire import ErrorCode, ErrorCodes


@get("/v1/errors", tags=["Service"], summary="All error codes", opt={OPEN_TO_ALL: True}, sync_to_thread=False)
def error_codes() -> ErrorCodes:
    """Every stable code with its status and what to do about it."""
    return ErrorCodes([ErrorCode(name, code.status, code.title, code.advice) for name, code in CODES.items()])


@get("/v1/openapi.json", include_in_schema=False, opt={OPEN_TO_ALL: True}, sync_to_thread=False)
def openapi_document(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The machine-readable description, generated from the running handlers."""
    return Response(encode_json(request.app.openapi_schema.to_schema()), media_type=JSON)


@get("/healthz", include_in_schema=False, opt={OPEN_TO_ALL: True}, sync_to_thread=False)
def alive() -> Response[bytes]:
    """The process answers."""
    return answer(b'{"status":"ok"}')


@get("/readyz", include_in_schema=False, opt={OPEN_TO_ALL: True}, sync_to_thread=False)
def ready(catalog: LiveCatalog) -> Response[bytes]:
    """A catalog is open; 503 while there is none."""
    catalog.get()
    return answer(b'{"status":"ready"}')
