"""Webhooks: endpoints, what was sent to them, replay, ping, another secret. Everything goes through `/v1`, free of credits.

The text of a secret is in the answer to the form that made it, and nowhere afterwards.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from litestar import Response, get, post
from litestar.params import FromPath

from account_store.clock import format_rfc3339, read_utc_time
from account_store.webhooks.endpoints import LONGEST_DESCRIPTION
from account_store.webhooks.event_types import EVENT_TYPES
from catalog_api.dashboard.browser_session import HOME, CurrentVisit, Visit
from catalog_api.dashboard.internal_requests import ApiResponse, check_path_segment

OVERLAPS = {"24": "in a day", "168": "in a week", "0": "at once"}
"""Hours for which a replaced secret signs beside the new one, as the form offers them."""
REPLAYS = {"1": "of the last hour", "24": "of the last day", "336": "of the last 14 days"}
"""Hours back, as the form offers them."""
LONGEST_URL = 2000
_API = "/v1/webhooks"
_PAGES = f"{HOME}/webhooks"
_PAGE = 25


@get("/webhooks")
async def show_webhooks(visit: CurrentVisit) -> Response[Any]:
    """Show the account's webhooks and the form for a new one."""
    return await _render_webhooks(visit)


@post("/webhooks", status_code=200)
async def create_webhook(visit: CurrentVisit) -> Response[Any]:
    """Create a webhook; its secret is shown once."""
    # A checkbox that is not ticked sends no field.
    events = [name for name in EVENT_TYPES if visit.form.get(f"event {name}")]
    body = {"url": visit.form.get("url", "").strip(), "description": visit.form.get("description", "").strip(), "event_types": events}
    answer = await visit.request_api(_API, body=body)
    if answer.is_ok:
        return visit.render("webhook_secret.html", webhook=answer.document, is_new=True)
    return await _render_webhooks(visit, answer)


@get("/webhooks/{webhook_id:str}")
async def show_webhook(visit: CurrentVisit, webhook_id: FromPath[str]) -> Response[Any]:
    """Show a webhook with its deliveries, newest first."""
    return await _render_webhook(visit, check_path_segment(webhook_id))


@post("/webhooks/{webhook_id:str}/status", status_code=200)
async def switch_webhook(visit: CurrentVisit, webhook_id: FromPath[str]) -> Response[Any]:
    """Enable or disable it."""
    status = visit.form.get("status", "")
    return await _finish_change(
        visit, webhook_id, await visit.request_api(f"{_API}/{check_path_segment(webhook_id)}", body={"status": status}, method="PATCH")
    )


@post("/webhooks/{webhook_id:str}/delete", status_code=200)
async def delete_webhook(visit: CurrentVisit, webhook_id: FromPath[str]) -> Response[Any]:
    """Delete it."""
    (await visit.request_api(f"{_API}/{check_path_segment(webhook_id)}", method="DELETE")).raise_if_refused()
    return visit.redirect(_PAGES)


@post("/webhooks/{webhook_id:str}/rotate", status_code=200)
async def rotate_secret(visit: CurrentVisit, webhook_id: FromPath[str]) -> Response[Any]:
    """Create a new secret, shown once."""
    hours = visit.form.get("overlap", "")
    # A value that the form does not offer means no overlap.
    body = {"overlap_hours": int(hours if hours in OVERLAPS else 0)}
    answer = (await visit.request_api(f"{_API}/{check_path_segment(webhook_id)}/rotate", body=body)).raise_if_refused()
    return visit.render("webhook_secret.html", webhook=answer.document, is_new=False)


@post("/webhooks/{webhook_id:str}/ping", status_code=200)
async def ping(visit: CurrentVisit, webhook_id: FromPath[str]) -> Response[Any]:
    """Send a test event."""
    return await _finish_change(visit, webhook_id, await visit.request_api(f"{_API}/{check_path_segment(webhook_id)}/ping", method="POST"))


@post("/webhooks/{webhook_id:str}/replay", status_code=200)
async def replay_missed(visit: CurrentVisit, webhook_id: FromPath[str]) -> Response[Any]:
    """Send again the deliveries that were missed."""
    hours = visit.form.get("hours", "")
    since = read_utc_time() - timedelta(hours=int(hours if hours in REPLAYS else 1))
    return await _finish_change(
        visit, webhook_id, await visit.request_api(f"{_API}/{check_path_segment(webhook_id)}/replay", body={"since": format_rfc3339(since)})
    )


@get("/webhooks/{webhook_id:str}/deliveries/{delivery_id:int}")
async def show_delivery(visit: CurrentVisit, webhook_id: FromPath[str], delivery_id: FromPath[int]) -> Response[Any]:
    """Show the body of a delivery and every attempt."""
    answer = (await visit.request_api(f"{_API}/{check_path_segment(webhook_id)}/deliveries/{delivery_id}")).raise_if_refused()
    return visit.render("delivery.html", webhook_id=webhook_id, delivery=answer.document)


@post("/webhooks/{webhook_id:str}/deliveries/{delivery_id:int}/replay", status_code=200)
async def replay_delivery(visit: CurrentVisit, webhook_id: FromPath[str], delivery_id: FromPath[int]) -> Response[Any]:
    """Send one delivery again."""
    return await _finish_change(
        visit,
        webhook_id,
        await visit.request_api(f"{_API}/{check_path_segment(webhook_id)}/deliveries/{delivery_id}/replay", method="POST"),
    )


async def _render_webhooks(visit: Visit, answer: ApiResponse | None = None) -> Response[Any]:
    found = (await visit.request_api(_API)).raise_if_refused()
    values = {"longest_url": LONGEST_URL, "longest_description": LONGEST_DESCRIPTION, "event_types": EVENT_TYPES}
    status = 200 if answer is None else answer.status
    return visit.render("webhooks.html", status, found=found.document["results"], answer=answer, form_values=visit.form, **values)


async def _render_webhook(visit: Visit, webhook_id: str, refused: ApiResponse | None = None) -> Response[Any]:
    one = (await visit.request_api(f"{_API}/{webhook_id}")).raise_if_refused()
    cursor = visit.request.query_params.get("cursor", "")
    query: dict[str, str | int] = {"limit": _PAGE}
    sent = (await visit.request_api(f"{_API}/{webhook_id}/deliveries", {**query, "cursor": cursor} if cursor else query)).raise_if_refused()
    status = 200 if refused is None else refused.status
    return visit.render(
        "webhook.html", status, webhook=one.document, sent=sent.document, refused=refused, overlaps=OVERLAPS, replays=REPLAYS
    )


async def _finish_change(visit: Visit, webhook_id: str, answer: ApiResponse) -> Response[Any]:
    """Return to the webhook's page, with the reason if it was refused."""
    return visit.redirect(f"{_PAGES}/{webhook_id}") if answer.is_ok else await _render_webhook(visit, webhook_id, answer)


PAGES = [
    show_webhooks,
    create_webhook,
    show_webhook,
    switch_webhook,
    delete_webhook,
    rotate_secret,
    ping,
    replay_missed,
    show_delivery,
    replay_delivery,
]
