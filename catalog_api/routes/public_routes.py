"""What the service says about itself: its error codes, its description, its changes, whether it can answer. Open to all: no key needed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from litestar import get
from litestar.types import Scope

from catalog_api.answers import Answer, encoded
from catalog_api.changelog import CHANGES
from catalog_api.middleware.authentication import OPEN_TO_ALL
from catalog_api.problems import CODES
from catalog_api.reference import reference_style
from catalog_api.server.request_statistics import REPORTS_FOLDER
from catalog_api.service import Service
from catalog_api.wire.service_types import Changelog, ErrorCode, ErrorCodes, Readiness
from catalog_store.scrub import read_state

_OPEN = {OPEN_TO_ALL: True}
_NOBODYS_KEY = "readyz"
"""Asked of the accounts: that it is unknown is remembered for some seconds, so that probes cost nothing."""
_PAGE_POLICY = {
    "content-security-policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "max-age=300",
}
_ERROR_CODES = encoded(ErrorCodes([ErrorCode(name, code.status, code.title, code.advice) for name, code in CODES.items()]))
_STYLE = reference_style()
_CHANGELOG = encoded(Changelog(list(CHANGES)))


@get("/v1/errors", opt=_OPEN, sync_to_thread=False)
def error_codes() -> Answer:
    """Every stable code with its status and what to do about it."""
    return _ERROR_CODES


@get("/v1/changelog", opt=_OPEN, sync_to_thread=False)
def changelog() -> Answer:
    """The changes of the interface, newest first."""
    return _CHANGELOG


@get("/v1/openapi.json", opt=_OPEN, sync_to_thread=False)
def openapi_document(scope: Scope) -> Answer:
    """The machine-readable description, generated from the running handlers."""
    return Answer(service_of(scope).description)


@get("/v1/docs", opt=_OPEN, sync_to_thread=False)
def reference_page(scope: Scope) -> Answer:
    """The reference for people, made from the description."""
    return Answer(service_of(scope).reference, _PAGE_POLICY, media_type="text/html; charset=utf-8")


@get("/v1/docs/style.css", opt=_OPEN, sync_to_thread=False)
def reference_style_sheet() -> Answer:
    """How the reference looks."""
    return Answer(_STYLE, {"cache-control": "max-age=300"}, media_type="text/css; charset=utf-8")


@get("/healthz", opt=_OPEN, sync_to_thread=False)
def alive() -> Answer:
    """The process answers."""
    return Answer(b'{"status":"ok"}')


@get("/readyz", opt=_OPEN)
async def ready(scope: Scope) -> Answer:
    """A catalog is open and the accounts answer; 503 while either is not so.

    A worker that cannot follow `current` keeps answering from the good snapshot that it has, and says that it is stale: all nodes meet a
    bad snapshot at once, and a load balancer that took them all out would make an outage of it.
    """
    service = service_of(scope)
    with service.live.hold():
        await service.accounts.keys.authenticate(_NOBODYS_KEY)
    standing, scrubbed = await asyncio.to_thread(lambda: (service.live.read_status(), read_state(Path(os.environ.get(REPORTS_FOLDER, "")))))
    return encoded(
        Readiness(
            status="ready",
            snapshot=standing.served,
            current=standing.current,
            behind_seconds=round(standing.behind_seconds, 1),
            is_stale=standing.behind_seconds >= service.settings.stale_seconds or not standing.is_following,
            is_refused=standing.is_refused,
            is_following=standing.is_following,
            damaged_files=None if scrubbed is None or scrubbed.snapshot != standing.served else len(scrubbed.damaged),
        )
    )


def service_of(scope: Scope) -> Service:
    """The service that answers this request."""
    service: Service = scope["litestar_app"].state.service
    return service
