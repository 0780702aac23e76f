"""The audit log of the caller's account."""

from __future__ import annotations

import asyncio

from account_store.api_keys import Caller
from account_store.clock import format_rfc3339
from catalog_api.answers import Answer, encode_answer
from catalog_api.metering import FreeQuestion, Question
from catalog_api.parameters import CURSOR, LIMIT, ParameterValues
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.wire.account_types import AuditEntry, AuditPage
from catalog_store.cursors import CursorCodec, Place

_CURSORS = CursorCodec()


@get_route(
    "/v1/audit",
    AuditPage,
    tag="Account",
    summary="Changes of the account",
    parameters=(LIMIT, CURSOR),
    failures=("invalid_cursor",),
    is_free=True,
    is_about_catalog=False,
)
def audit(values: ParameterValues) -> Question:
    """List the changes of keys, webhooks, streams, members and plan, newest first. The key needs the scope `audit`."""

    async def work(service: Service, caller: Caller) -> Answer:
        query, cursor, limit = ("audit", str(caller.account_id)), values[CURSOR], values[LIMIT]
        before = None if cursor is None else _CURSORS.decode(query, cursor).id
        # One more than the page shows whether another one follows.
        found = await asyncio.to_thread(service.accounts.audit.read_page, caller.account_id, limit=limit + 1, before=before)
        following = _CURSORS.encode(query, Place(0, 0, found[limit - 1].entry_id)) if len(found) > limit else None
        entries = [
            AuditEntry(one.entry_id, format_rfc3339(one.happened_at), one.actor, one.action, one.subject, one.detail)
            for one in found[:limit]
        ]
        return encode_answer(AuditPage(entries, following))

    return FreeQuestion(work)
