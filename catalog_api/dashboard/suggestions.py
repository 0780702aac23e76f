"""Suggested corrections: sent as `POST /v1/tracks/{id}/suggestions` (paid plans, one credit), and what became of them (free)."""

from __future__ import annotations

import secrets
from typing import Any

from litestar import Response, get, post
from litestar.params import FromPath

from account_store.suggestions import FIELDS, LONGEST_NOTE, LONGEST_VALUE
from catalog_api.dashboard.asking import Told
from catalog_api.dashboard.visits import HOME, Guest, Visit

_PAGE = 50
_OPTIONAL = ("note", "source_url")


@get("/suggestions")
async def suggestions(visit: Guest) -> Response[Any]:
    """The account's own, oldest first."""
    accounts, account_id = visit.service.accounts, visit.person.account_id
    text = visit.request.query_params.get("after", "0")
    after = int(text) if text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004 - digits of an id in the store
    found, account = await visit.desk.store.do(
        lambda: (accounts.suggestions.page(account_id=account_id, limit=_PAGE + 1, after=after), accounts.account(account_id))
    )
    following = found[_PAGE - 1].suggestion_id if len(found) > _PAGE else None
    sent = visit.request.query_params.get("sent", "")
    return visit.page("suggestions.html", found=found[:_PAGE], following=following, plan=account.plan, sent=sent)


@get("/tracks/{track_id:int}/suggestions")
async def suggestion_form(visit: Guest, track_id: FromPath[int]) -> Response[Any]:
    """The form for one track; a plan that may not is told why."""
    return await _form_page(visit, track_id)


@post("/tracks/{track_id:int}/suggestions", status_code=200)
async def suggest(visit: Guest, track_id: FromPath[int]) -> Response[Any]:
    """Send it. The form carries an idempotency key: sent twice, it is one suggestion and one credit."""
    form = visit.form
    body = {"field": form.get("field", ""), "value": form.get("value", "").strip()}
    body |= {name: form[name].strip() for name in _OPTIONAL if form.get(name, "").strip()}
    told = await visit.ask(f"/v1/tracks/{track_id}/suggestions", body=body, idempotency_key=form.get("once", ""))
    if told.is_ok:
        return visit.to(f"{HOME}/suggestions?sent={told.document['id']}")
    return await _form_page(visit, track_id, told)


async def _form_page(visit: Visit, track_id: int, told: Told | None = None) -> Response[Any]:
    plan = (await visit.as_caller())[0].plan
    values = {"fields": FIELDS, "longest_value": LONGEST_VALUE, "longest_note": LONGEST_NOTE, "once": secrets.token_urlsafe(16)}
    status = 200 if told is None else told.status
    return visit.page("suggest.html", status, track_id=track_id, plan=plan, told=told, said=visit.form, **values)
