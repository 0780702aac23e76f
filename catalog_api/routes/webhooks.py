"""Webhooks: who is told of events, what was sent and what came of it (contract G8). On any plan, free of charge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from account_store.accounts import Accounts
from account_store.api_keys import Caller
from account_store.errors import InvalidValueError, UnknownError
from account_store.webhooks.deliveries import Delivery, DeliveryDetail, DisabledError
from account_store.webhooks.endpoints import LONGEST_DESCRIPTION, LONGEST_OVERLAP, OVERLAP, Endpoint, NewSecret, TooManyEndpointsError
from account_store.webhooks.events import EVENT_TYPES
from account_store.webhooks.sealing import SealedError
from catalog_api.address_check import vet
from catalog_api.answers import Answer, encoded
from catalog_api.metering import Free, Question, timestamp
from catalog_api.parameters import CURSOR, DELIVERY_ID, DELIVERY_STATUS, LIMIT, URL_PATTERN, WEBHOOK_ID, ParameterValues
from catalog_api.problems import RETRY_SOON, ApiError, ParameterProblem
from catalog_api.request_bodies import Members
from catalog_api.route_declaration import acts, alters, deletes, reads, writes
from catalog_api.service import Service
from catalog_api.wire.account_types import (
    NewWebhook,
    Webhook,
    WebhookAttempt,
    WebhookDelivery,
    WebhookDeliveryDetail,
    WebhookDeliveryPage,
    WebhookList,
    WebhookReplay,
)
from catalog_store.cursors import CursorCodec, Place
from outbound_http.targets import LONGEST_URL

T = TypeVar("T")

_STATUSES = ENABLED, DISABLED = ("enabled", "disabled")
_HOURS = timedelta(hours=1)
_PROPERTIES: dict[str, dict[str, Any]] = {
    "url": {"type": "string", "format": "uri", "maxLength": LONGEST_URL, "pattern": URL_PATTERN},
    "event_types": {"type": ["array", "null"], "items": {"type": "string", "enum": list(EVENT_TYPES)}},
    "description": {"type": ["string", "null"], "maxLength": LONGEST_DESCRIPTION, "pattern": r"^[^\x00]*$"},
}
_NEW = {"type": "object", "required": ["url"], "properties": _PROPERTIES}
_CHANGED = {
    "url": {**_PROPERTIES["url"], "type": ["string", "null"]},
    "status": {"type": ["string", "null"], "enum": [*_STATUSES, None]},
}
_CHANGES = {"type": "object", "properties": {**_PROPERTIES, **_CHANGED}}
_OVERLAP_HOURS = {"type": ["integer", "null"], "minimum": 0, "maximum": LONGEST_OVERLAP // _HOURS, "default": OVERLAP // _HOURS}
_ROTATION = {"type": "object", "properties": {"overlap_hours": _OVERLAP_HOURS}}
_SINCE = {"type": "object", "required": ["since"], "properties": {"since": {"type": "string", "format": "date-time"}}}
_CURSORS = CursorCodec()
_COMMON: dict[str, Any] = {"tag": "Webhooks", "is_free": True, "is_about_catalog": False}
_ONE: dict[str, Any] = {**_COMMON, "parameters": (WEBHOOK_ID,), "failures": ("not_found",)}
_DELIVERY: dict[str, Any] = {**_COMMON, "parameters": (WEBHOOK_ID, DELIVERY_ID)}


@writes(
    "/v1/webhooks",
    NewWebhook,
    summary="Be told of events",
    failures=("too_many_webhooks", "secrets_unavailable"),
    body=_NEW,
    https_only=True,
    **_COMMON,
)
def create_webhook(_asked: ParameterValues, members: Members) -> Question:
    """Have events of `event_types` (all, when there are none) sent to an https address. The answer holds the secret, once.

    Addresses inside private networks are refused; a name that does not resolve at the moment is taken.
    """
    url, event_types, description = members.address("url", LONGEST_URL), *_described(members)
    members.check()
    rest = (event_types or (), description or "")
    return _answered(lambda accounts, me: accounts.webhooks.create(me, url, *rest, is_vetted=True), _new, url)


@reads("/v1/webhooks", WebhookList, summary="Your webhooks", **_COMMON)
def webhooks(_asked: ParameterValues) -> Question:
    """The account's webhooks, oldest first; at most 20."""
    return _answered(lambda accounts, me: accounts.webhooks.all(me), lambda found: WebhookList([_shown(one) for one in found]))


@reads("/v1/webhooks/{id:str}", Webhook, summary="A webhook by id", **_ONE)
def webhook(asked: ParameterValues) -> Question:
    """What it is told, and how that goes."""
    return _answered(lambda accounts, me: accounts.webhooks.one(me, asked[WEBHOOK_ID]), _shown)


@alters("/v1/webhooks/{id:str}", Webhook, summary="Change a webhook", body=_CHANGES, https_only=True, **_ONE)
def change_webhook(asked: ParameterValues, members: Members) -> Question:
    """Change the members that are sent. While it is disabled events are held; once it is enabled again they can be replayed."""
    url = None if members.value("url") is None else members.address("url", LONGEST_URL)
    event_types, description = _described(members)
    status = None if members.value("status") is None else members.choice("status", _STATUSES)
    members.check()
    changes: dict[str, Any] = {"url": url, "event_types": event_types, "description": description}
    changes["is_enabled"] = None if status is None else status == ENABLED
    return _answered(lambda accounts, me: accounts.webhooks.change(me, asked[WEBHOOK_ID], is_vetted=True, **changes), _shown, url)


@deletes("/v1/webhooks/{id:str}", Webhook, summary="Delete a webhook", **_ONE)
def delete_webhook(asked: ParameterValues) -> Question:
    """Forget it, its secret and its deliveries. The answer is what it was."""
    return _answered(lambda accounts, me: accounts.webhooks.delete(me, asked[WEBHOOK_ID]), _shown)


@writes(
    "/v1/webhooks/{id:str}/rotate",
    NewWebhook,
    summary="Replace a webhook's secret",
    body=_ROTATION,
    needs_body=False,
    **{**_ONE, "failures": ("not_found", "secrets_unavailable")},
)
def rotate_webhook_secret(asked: ParameterValues, members: Members) -> Question:
    """A new secret, told once. The one before signs beside it for `overlap_hours`, so that receivers can be moved over."""
    hours = members.optional_integer("overlap_hours", 0, LONGEST_OVERLAP // _HOURS)
    members.check()
    overlap = OVERLAP if hours is None else hours * _HOURS
    return _answered(lambda accounts, me: accounts.webhooks.rotate(me, asked[WEBHOOK_ID], overlap), _new)


@acts("/v1/webhooks/{id:str}/ping", WebhookDelivery, summary="Send a test event", **{**_ONE, "failures": ("not_found", "webhook_disabled")})
def ping_webhook(asked: ParameterValues) -> Question:
    """Send `webhook.ping`, whatever the webhook asks for; its delivery tells what came of it a moment later."""
    return _answered(lambda accounts, me: accounts.deliveries.ping(me, asked[WEBHOOK_ID]), _delivery)


@writes(
    "/v1/webhooks/{id:str}/replay",
    WebhookReplay,
    summary="Send again what was missed",
    body=_SINCE,
    **{**_ONE, "failures": ("not_found", "webhook_disabled")},
)
def replay_webhook(asked: ParameterValues, members: Members) -> Question:
    """Send again all deliveries that failed or were held since a time; deliveries are kept for 14 days."""
    since = members.moment("since")
    members.check()
    assert since is not None  # noqa: S101 - check has refused none
    return _answered(lambda accounts, me: accounts.deliveries.replay_since(me, asked[WEBHOOK_ID], since), WebhookReplay)


@reads(
    "/v1/webhooks/{id:str}/deliveries",
    WebhookDeliveryPage,
    summary="What was sent",
    parameters=(WEBHOOK_ID, DELIVERY_STATUS, LIMIT, CURSOR),
    failures=("not_found", "invalid_cursor"),
    **_COMMON,
)
def webhook_deliveries(asked: ParameterValues) -> Question:
    """The webhook's deliveries of the last 14 days, newest first."""
    endpoint_id, status, cursor, limit = asked[WEBHOOK_ID], asked[DELIVERY_STATUS], asked[CURSOR], asked[LIMIT]
    query = ("deliveries", endpoint_id, str(status))
    before = None if cursor is None else _CURSORS.decode(query, cursor).id

    def shown(found: list[Delivery]) -> WebhookDeliveryPage:
        following = _CURSORS.encode(query, Place(0, 0, found[limit - 1].delivery_id)) if len(found) > limit else None
        return WebhookDeliveryPage([_delivery(one) for one in found[:limit]], following)

    return _answered(lambda accounts, me: accounts.deliveries.page(me, endpoint_id, status=status, limit=limit + 1, before=before), shown)


@reads(
    "/v1/webhooks/{id:str}/deliveries/{delivery_id:str}", WebhookDeliveryDetail, summary="A delivery", failures=("not_found",), **_DELIVERY
)
def webhook_delivery(asked: ParameterValues) -> Question:
    """A delivery with its body and all its attempts."""
    return _answered(lambda accounts, me: accounts.deliveries.one(me, asked[WEBHOOK_ID], asked[DELIVERY_ID]), _detail)


@acts(
    "/v1/webhooks/{id:str}/deliveries/{delivery_id:str}/replay",
    WebhookDelivery,
    summary="Send a delivery again",
    failures=("not_found", "webhook_disabled"),
    **_DELIVERY,
)
def replay_webhook_delivery(asked: ParameterValues) -> Question:
    """Send it again, whatever became of it, with the same `webhook-id`."""
    return _answered(lambda accounts, me: accounts.deliveries.replay(me, asked[WEBHOOK_ID], asked[DELIVERY_ID]), _delivery)


def _answered(ask: Callable[[Accounts, int], T], show: Callable[[T], msgspec.Struct], url: str | None = None) -> Question:
    """What the accounts answer when they are asked for the caller's account, shown; a `url` is looked at first."""

    async def work(service: Service, caller: Caller) -> Answer:
        if url is not None:
            await vet(service.outbound, url, https_only=True)
        with _told():
            return encoded(show(await asyncio.to_thread(ask, service.accounts, caller.account_id)))

    return Free(work)


@contextmanager
def _told() -> Iterator[None]:
    """What the accounts refuse, as the caller is told it."""
    try:
        yield
    except UnknownError as error:
        raise ApiError("not_found", f"{str(error).capitalize()}.") from None
    except DisabledError:
        raise ApiError("webhook_disabled", "The webhook is disabled.") from None
    except TooManyEndpointsError as error:
        raise ApiError("too_many_webhooks", f"{str(error).capitalize()}.") from None
    except SealedError:
        # The log tells the operator what to do about it.
        raise ApiError("secrets_unavailable", "A secret cannot be kept safely at the moment.", headers=RETRY_SOON) from None
    except InvalidValueError as error:
        raise ApiError("invalid_parameter", f"{error}.", (ParameterProblem("body", "url", str(error)),)) from None


def _described(members: Members) -> tuple[list[str] | None, str | None]:
    return members.choices("event_types", EVENT_TYPES), members.optional_text("description", LONGEST_DESCRIPTION)


def _if_any(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)


def _shown(one: Endpoint) -> Webhook:
    return Webhook(**_members(one))


def _new(made: NewSecret) -> NewWebhook:
    return NewWebhook(**_members(made.endpoint), secret=made.secret)


def _members(one: Endpoint) -> dict[str, Any]:
    return {
        "id": one.endpoint_id,
        "url": one.url,
        "description": one.description,
        "event_types": list(one.event_types),
        "status": ENABLED if one.is_enabled else DISABLED,
        "disabled_reason": one.disabled_reason,
        "disabled_at": _if_any(one.disabled_at),
        "failing_since": _if_any(one.failing_since),
        "created_at": timestamp(one.created_at),
        "previous_secret_until": _if_any(one.previous_secret_until),
    }


def _delivery(one: Delivery) -> WebhookDelivery:
    return WebhookDelivery(**_facts(one))


def _detail(found: DeliveryDetail) -> WebhookDeliveryDetail:
    attempts = [
        WebhookAttempt(timestamp(tried.attempted_at), tried.duration_ms, tried.status_code, tried.error, tried.response_excerpt)
        for tried in found.attempts
    ]
    return WebhookDeliveryDetail(**_facts(found.delivery), body=found.body, attempts=attempts)


def _facts(one: Delivery) -> dict[str, Any]:
    return {
        "id": one.delivery_id,
        "event_id": one.event_id,
        "event_type": one.event_type,
        "occurred_at": timestamp(one.occurred_at),
        "status": one.status,
        "next_attempt_at": _if_any(one.due_at),
        "finished_at": _if_any(one.finished_at),
        "attempt_count": one.attempt_count,
        "last_status_code": one.last_status_code,
        "last_error": one.last_error,
    }
