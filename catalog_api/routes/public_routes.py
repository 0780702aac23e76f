"""Routes that need no key: error codes, changelog, description, reference page, health."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from litestar import get
from litestar.types import Scope

from catalog_api.answers import Answer, encode_answer
from catalog_api.changelog import CHANGES
from catalog_api.middleware.authentication import OPEN_TO_ALL
from catalog_api.problems import CODES
from catalog_api.reference.reference_page import read_reference_script, read_reference_style
from catalog_api.server.request_statistics import REPORTS_FOLDER
from catalog_api.service import Description, Service
from catalog_api.wire.service_types import Changelog, ErrorCode, ErrorCodes, Readiness
from catalog_store.scrub import read_state

_OPEN = {OPEN_TO_ALL: True}
_NOBODYS_KEY = "readyz"
"""An unknown key. The accounts cache that it is unknown for some seconds, so that probes cost nothing."""
_PAGE_POLICY = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "max-age=300",
}
# Encoded once: these answers change only with the program.
_ERROR_CODES = encode_answer(ErrorCodes([ErrorCode(name, code.status, code.title, code.advice) for name, code in CODES.items()]))
_STYLE, _SCRIPT = read_reference_style(), read_reference_script()
_CHANGELOG = encode_answer(Changelog(list(CHANGES)))


@get("/v1/errors", opt=_OPEN, sync_to_thread=False)
def get_error_codes() -> Answer:
    """Return every stable code with its status and its remedy."""
    return _ERROR_CODES


@get("/v1/changelog", opt=_OPEN, sync_to_thread=False)
def get_changelog() -> Answer:
    """Return the changes of the interface, newest first."""
    return _CHANGELOG


@get("/v1/openapi.json", opt=_OPEN, sync_to_thread=False)
def get_openapi_document(scope: Scope) -> Answer:
    """Return the machine-readable description, generated from the declared routes."""
    return Answer(_describe(scope).document)


@get("/v1/docs", opt=_OPEN)
async def get_reference_page(scope: Scope) -> Answer:
    """Return the reference for people, rendered from the description for each build."""
    # In a thread: the first page of a build asks the catalog.
    page = await asyncio.to_thread(_describe(scope).render_page, get_service(scope))
    return Answer(page, _PAGE_POLICY, media_type="text/html; charset=utf-8")


@get("/v1/docs/style.css", opt=_OPEN, sync_to_thread=False)
def get_reference_style_sheet() -> Answer:
    """Return the style sheet of the reference page."""
    return Answer(_STYLE, {"cache-control": "max-age=300"}, media_type="text/css; charset=utf-8")


@get("/v1/docs/page.js", opt=_OPEN, sync_to_thread=False)
def get_reference_page_script() -> Answer:
    """Return the script of the reference page."""
    return Answer(_SCRIPT, {"cache-control": "max-age=300"}, media_type="text/javascript; charset=utf-8")


@get("/healthz", opt=_OPEN, sync_to_thread=False)
def check_alive() -> Answer:
    """Answer 200: the process runs."""
    return Answer(b'{"status":"ok"}')


@get("/readyz", opt=_OPEN)
async def check_readiness(scope: Scope) -> Answer:
    """Answer 200 when a catalog is open and the accounts answer, else 503.

    A worker that cannot follow `current` keeps answering from its good snapshot and reports that it is stale.
    """
    service = get_service(scope)
    with service.live.hold():
        await service.accounts.keys.authenticate(_NOBODYS_KEY)
    # In a thread: both read files.
    standing, scrubbed = await asyncio.to_thread(lambda: (service.live.read_status(), read_state(Path(os.environ.get(REPORTS_FOLDER, "")))))
    # Stale is not 503: all nodes meet a bad snapshot at once, and a load balancer that removed them all would cause an outage.
    return encode_answer(
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


def _describe(scope: Scope) -> Description:
    service = get_service(scope)
    return service.describe(service.live.platforms)


def get_service(scope: Scope) -> Service:
    """Return the service that answers this request."""
    service: Service = scope["litestar_app"].state.service
    return service
