"""Webhooks: endpoints, what was sent to them, replay, ping, another secret. Everything goes through `/v1`, free of credits.

The text of a secret is in the answer to the form that made it, and nowhere afterwards.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from litestar import Response, get, post
from litestar.params import FromPath

from account_store.clock import rfc3339, utc_now
from account_store.webhooks.endpoints import LONGEST_DESCRIPTION
from account_store.webhooks.events import EVENT_TYPES
from catalog_api.dashboard.browser_session import HOME, Guest, Visit
from catalog_api.dashboard.internal_requests import Told, segment

OVERLAPS = {"24": "in a day", "168": "in a week", "0": "at once"}
"""Hours that a replaced secret signs beside the new one, as the form offers them."""
REPLAYS = {"1": "of the last hour", "24": "of the last day", "336": "of the last 14 days"}
"""Hours back, as the form offers them."""
LONGEST_URL = 2000
_API = "/v1/webhooks"
_PAGES = f"{HOME}/webhooks"
_PAGE = 25


@get("/webhooks")
async def webhooks(visit: Guest) -> Response[Any]:
    """The account's endpoints and the form for another."""
    return await _list_page(visit)


@post("/webhooks", status_code=200)
async def create_webhook(visit: Guest) -> Response[Any]:
    """Another endpoint; its secret is shown once."""
    events = [name for name in EVENT_TYPES if visit.form.get(f"event {name}")]
    body = {"url": visit.form.get("url", "").strip(), "description": visit.form.get("description", "").strip(), "event_types": events}
    told = await visit.ask(_API, body=body)
    if told.is_ok:
        return visit.page("webhook_secret.html", webhook=told.document, is_new=True)
    return await _list_page(visit, told)


@get("/webhooks/{webhook_id:str}")
async def webhook(visit: Guest, webhook_id: FromPath[str]) -> Response[Any]:
    """An endpoint with its deliveries, newest first."""
    return await _page(visit, segment(webhook_id))


@post("/webhooks/{webhook_id:str}/status", status_code=200)
async def switch_webhook(visit: Guest, webhook_id: FromPath[str]) -> Response[Any]:
    """Enable or disable it."""
    status = visit.form.get("status", "")
    return await _done(visit, webhook_id, await visit.ask(f"{_API}/{segment(webhook_id)}", body={"status": status}, method="PATCH"))


@post("/webhooks/{webhook_id:str}/delete", status_code=200)
async def delete_webhook(visit: Guest, webhook_id: FromPath[str]) -> Response[Any]:
    """Forget it."""
    (await visit.ask(f"{_API}/{segment(webhook_id)}", method="DELETE")).or_refused()
    return visit.to(_PAGES)


@post("/webhooks/{webhook_id:str}/rotate", status_code=200)
async def rotate_secret(visit: Guest, webhook_id: FromPath[str]) -> Response[Any]:
    """Another secret, shown once."""
    hours = visit.form.get("overlap", "")
    body = {"overlap_hours": int(hours if hours in OVERLAPS else 0)}
    told = (await visit.ask(f"{_API}/{segment(webhook_id)}/rotate", body=body)).or_refused()
    return visit.page("webhook_secret.html", webhook=told.document, is_new=False)


@post("/webhooks/{webhook_id:str}/ping", status_code=200)
async def ping(visit: Guest, webhook_id: FromPath[str]) -> Response[Any]:
    """Send a test event."""
    return await _done(visit, webhook_id, await visit.ask(f"{_API}/{segment(webhook_id)}/ping", method="POST"))


@post("/webhooks/{webhook_id:str}/replay", status_code=200)
async def replay_missed(visit: Guest, webhook_id: FromPath[str]) -> Response[Any]:
    """Send again what was missed."""
    hours = visit.form.get("hours", "")
    since = utc_now() - timedelta(hours=int(hours if hours in REPLAYS else 1))
    return await _done(visit, webhook_id, await visit.ask(f"{_API}/{segment(webhook_id)}/replay", body={"since": rfc3339(since)}))


@get("/webhooks/{webhook_id:str}/deliveries/{delivery_id:int}")
async def delivery(visit: Guest, webhook_id: FromPath[str], delivery_id: FromPath[int]) -> Response[Any]:
    """What was sent, and every attempt."""
    told = (await visit.ask(f"{_API}/{segment(webhook_id)}/deliveries/{delivery_id}")).or_refused()
    return visit.page("delivery.html", webhook_id=webhook_id, delivery=told.document)


@post("/webhooks/{webhook_id:str}/deliveries/{delivery_id:int}/replay", status_code=200)
async def replay_delivery(visit: Guest, webhook_id: FromPath[str], delivery_id: FromPath[int]) -> Response[Any]:
    """Send one again."""
    return await _done(visit, webhook_id, await visit.ask(f"{_API}/{segment(webhook_id)}/deliveries/{delivery_id}/replay", method="POST"))


async def _list_page(visit: Visit, told: Told | None = None) -> Response[Any]:
    found = (await visit.ask(_API)).or_refused()
    values = {"longest_url": LONGEST_URL, "longest_description": LONGEST_DESCRIPTION, "event_types": EVENT_TYPES}
    status = 200 if told is None else told.status
    return visit.page("webhooks.html", status, found=found.document["results"], told=told, said=visit.form, **values)


async def _page(visit: Visit, webhook_id: str, refused: Told | None = None) -> Response[Any]:
    one = (await visit.ask(f"{_API}/{webhook_id}")).or_refused()
    cursor = visit.request.query_params.get("cursor", "")
    query: dict[str, str | int] = {"limit": _PAGE}
    sent = (await visit.ask(f"{_API}/{webhook_id}/deliveries", {**query, "cursor": cursor} if cursor else query)).or_refused()
    status = 200 if refused is None else refused.status
    return visit.page("webhook.html", status, webhook=one.document, sent=sent.document, refused=refused, overlaps=OVERLAPS, replays=REPLAYS)


async def _done(visit: Visit, webhook_id: str, told: Told) -> Response[Any]:
    """Back to the endpoint's page, or why not."""
    return visit.to(f"{_PAGES}/{webhook_id}") if told.is_ok else await _page(visit, webhook_id, told)


PAGES = [webhooks, create_webhook, webhook, switch_webhook, delete_webhook, rotate_secret, ping, replay_missed, delivery, replay_delivery]
