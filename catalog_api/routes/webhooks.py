"""Webhooks: registration, deliveries, replays (contract G8). On any plan, free of charge."""

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
from account_store.webhooks.event_types import EVENT_TYPES
from account_store.webhooks.sealing import SealedError
from catalog_api.address_check import check_address
from catalog_api.answers import Answer, encode_answer
from catalog_api.metering import FreeQuestion, Question, format_timestamp
from catalog_api.parameters import CURSOR, DELIVERY_ID, DELIVERY_STATUS, LIMIT, URL_PATTERN, WEBHOOK_ID, ParameterValues
from catalog_api.problems import RETRY_SOON, ApiError, ParameterProblem
from catalog_api.request_bodies import Members
from catalog_api.route_declaration import delete_route, get_route, patch_route, post_route, post_route_without_body
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


@post_route(
    "/v1/webhooks",
    NewWebhook,
    summary="Receive events",
    failures=("too_many_webhooks", "secrets_unavailable"),
    body=_NEW,
    https_only=True,
    **_COMMON,
)
def create_webhook(_values: ParameterValues, members: Members) -> Question:
    """Register an https address for events of `event_types` (all, when there are none). Only this answer holds the secret.

    Addresses inside private networks are refused; a name that does not resolve at the moment is accepted.
    """
    url, event_types, description = members.read_address("url", LONGEST_URL), *_read_description(members)
    members.check()
    rest = (event_types or (), description or "")
    # `is_vetted`: `_ask_accounts` checks the address before, in threads where a slow name server delays no look-up of keys.
    return _ask_accounts(lambda accounts, me: accounts.webhooks.create(me, url, *rest, is_vetted=True), _build_new_webhook, url)


@get_route("/v1/webhooks", WebhookList, summary="Your webhooks", **_COMMON)
def webhooks(_values: ParameterValues) -> Question:
    """Return the account's webhooks, oldest first; at most 20."""
    return _ask_accounts(
        lambda accounts, me: accounts.webhooks.list_all(me), lambda found: WebhookList([_build_webhook(one) for one in found])
    )


@get_route("/v1/webhooks/{id:str}", Webhook, summary="A webhook by id", **_ONE)
def webhook(values: ParameterValues) -> Question:
    """Return a webhook: its events and its state."""
    return _ask_accounts(lambda accounts, me: accounts.webhooks.get(me, values[WEBHOOK_ID]), _build_webhook)


@patch_route("/v1/webhooks/{id:str}", Webhook, summary="Change a webhook", body=_CHANGES, https_only=True, **_ONE)
def change_webhook(values: ParameterValues, members: Members) -> Question:
    """Change the members that are sent. A disabled webhook keeps its events; once enabled again, they can be replayed."""
    # Null leaves a member as it is, like an absent one.
    url = None if members.read_value("url") is None else members.read_address("url", LONGEST_URL)
    event_types, description = _read_description(members)
    status = None if members.read_value("status") is None else members.read_choice("status", _STATUSES)
    members.check()
    changes: dict[str, Any] = {"url": url, "event_types": event_types, "description": description}
    changes["is_enabled"] = None if status is None else status == ENABLED
    return _ask_accounts(
        lambda accounts, me: accounts.webhooks.change(me, values[WEBHOOK_ID], is_vetted=True, **changes), _build_webhook, url
    )


@delete_route("/v1/webhooks/{id:str}", Webhook, summary="Delete a webhook", **_ONE)
def delete_webhook(values: ParameterValues) -> Question:
    """Delete it with its secret and its deliveries. The answer is its last state."""
    return _ask_accounts(lambda accounts, me: accounts.webhooks.delete(me, values[WEBHOOK_ID]), _build_webhook)


@post_route(
    "/v1/webhooks/{id:str}/rotate",
    NewWebhook,
    summary="Replace a webhook's secret",
    body=_ROTATION,
    needs_body=False,
    **{**_ONE, "failures": ("not_found", "secrets_unavailable")},
)
def rotate_webhook_secret(values: ParameterValues, members: Members) -> Question:
    """Create a new secret, which only this answer holds. The previous one also signs for `overlap_hours`; receivers change over."""
    hours = members.read_optional_integer("overlap_hours", 0, LONGEST_OVERLAP // _HOURS)
    members.check()
    overlap = OVERLAP if hours is None else hours * _HOURS
    return _ask_accounts(lambda accounts, me: accounts.webhooks.rotate(me, values[WEBHOOK_ID], overlap), _build_new_webhook)


@post_route_without_body(
    "/v1/webhooks/{id:str}/ping", WebhookDelivery, summary="Send a test event", **{**_ONE, "failures": ("not_found", "webhook_disabled")}
)
def ping_webhook(values: ParameterValues) -> Question:
    """Send `webhook.ping`, which needs no subscription. Its delivery shows the outcome a moment later."""
    return _ask_accounts(lambda accounts, me: accounts.deliveries.ping(me, values[WEBHOOK_ID]), _build_delivery)


@post_route(
    "/v1/webhooks/{id:str}/replay",
    WebhookReplay,
    summary="Send again what was missed",
    body=_SINCE,
    **{**_ONE, "failures": ("not_found", "webhook_disabled")},
)
def replay_webhook(values: ParameterValues, members: Members) -> Question:
    """Send again all deliveries since a time that failed or were held; deliveries are kept for 14 days."""
    since = members.read_time("since")
    members.check()
    assert since is not None  # noqa: S101 - check has refused none
    return _ask_accounts(lambda accounts, me: accounts.deliveries.replay_since(me, values[WEBHOOK_ID], since), WebhookReplay)


@get_route(
    "/v1/webhooks/{id:str}/deliveries",
    WebhookDeliveryPage,
    summary="Deliveries to a webhook",
    parameters=(WEBHOOK_ID, DELIVERY_STATUS, LIMIT, CURSOR),
    failures=("not_found", "invalid_cursor"),
    **_COMMON,
)
def webhook_deliveries(values: ParameterValues) -> Question:
    """Return the webhook's deliveries of the last 14 days, newest first."""
    endpoint_id, status, cursor, limit = values[WEBHOOK_ID], values[DELIVERY_STATUS], values[CURSOR], values[LIMIT]
    query = ("deliveries", endpoint_id, str(status))
    before = None if cursor is None else _CURSORS.decode(query, cursor).id

    def build_page(found: list[Delivery]) -> WebhookDeliveryPage:
        following = _CURSORS.encode(query, Place(0, 0, found[limit - 1].delivery_id)) if len(found) > limit else None
        return WebhookDeliveryPage([_build_delivery(one) for one in found[:limit]], following)

    return _ask_accounts(
        lambda accounts, me: accounts.deliveries.read_page(me, endpoint_id, status=status, limit=limit + 1, before=before), build_page
    )


@get_route(
    "/v1/webhooks/{id:str}/deliveries/{delivery_id:str}", WebhookDeliveryDetail, summary="A delivery", failures=("not_found",), **_DELIVERY
)
def webhook_delivery(values: ParameterValues) -> Question:
    """Return a delivery with its body and all its attempts."""
    return _ask_accounts(lambda accounts, me: accounts.deliveries.get(me, values[WEBHOOK_ID], values[DELIVERY_ID]), _build_delivery_detail)


@post_route_without_body(
    "/v1/webhooks/{id:str}/deliveries/{delivery_id:str}/replay",
    WebhookDelivery,
    summary="Send a delivery again",
    failures=("not_found", "webhook_disabled"),
    **_DELIVERY,
)
def replay_webhook_delivery(values: ParameterValues) -> Question:
    """Send it again with the same `webhook-id`, after any outcome."""
    return _ask_accounts(lambda accounts, me: accounts.deliveries.replay(me, values[WEBHOOK_ID], values[DELIVERY_ID]), _build_delivery)


def _ask_accounts(ask: Callable[[Accounts, int], T], show: Callable[[T], msgspec.Struct], url: str | None = None) -> Question:
    """Build a question that calls the accounts for the caller's account and shows the result; a `url` is checked first."""

    async def work(service: Service, caller: Caller) -> Answer:
        if url is not None:
            await check_address(service.outbound, url, https_only=True)
        with _translate_errors():
            return encode_answer(show(await asyncio.to_thread(ask, service.accounts, caller.account_id)))

    return FreeQuestion(work)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise errors of the accounts as ApiError."""
    try:
        yield
    except UnknownError as error:
        # Another account's webhook is unknown too: its existence is nobody else's business.
        raise ApiError("not_found", f"{str(error).capitalize()}.") from None
    except DisabledError:
        raise ApiError("webhook_disabled", "The webhook is disabled: enable it first.") from None
    except TooManyEndpointsError as error:
        raise ApiError("too_many_webhooks", f"{str(error).capitalize()}.") from None
    except SealedError:
        # The log names the remedy for the operator.
        raise ApiError("secrets_unavailable", "The server cannot seal webhook secrets at the moment.", headers=RETRY_SOON) from None
    except InvalidValueError as error:
        raise ApiError("invalid_parameter", f"{error}.", (ParameterProblem("body", "url", str(error)),)) from None


def _read_description(members: Members) -> tuple[list[str] | None, str | None]:
    return members.read_choices("event_types", EVENT_TYPES), members.read_optional_text("description", LONGEST_DESCRIPTION)


def _format_optional(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)


def _build_webhook(one: Endpoint) -> Webhook:
    return Webhook(**_build_webhook_members(one))


def _build_new_webhook(made: NewSecret) -> NewWebhook:
    return NewWebhook(**_build_webhook_members(made.endpoint), secret=made.secret)


def _build_webhook_members(one: Endpoint) -> dict[str, Any]:
    return {
        "id": one.endpoint_id,
        "url": one.url,
        "description": one.description,
        "event_types": list(one.event_types),
        "status": ENABLED if one.is_enabled else DISABLED,
        "disabled_reason": one.disabled_reason,
        "disabled_at": _format_optional(one.disabled_at),
        "failing_since": _format_optional(one.failing_since),
        "created_at": format_timestamp(one.created_at),
        "previous_secret_until": _format_optional(one.previous_secret_until),
    }


def _build_delivery(one: Delivery) -> WebhookDelivery:
    return WebhookDelivery(**_build_delivery_members(one))


def _build_delivery_detail(found: DeliveryDetail) -> WebhookDeliveryDetail:
    attempts = [
        WebhookAttempt(format_timestamp(tried.attempted_at), tried.duration_ms, tried.status_code, tried.error, tried.response_excerpt)
        for tried in found.attempts
    ]
    return WebhookDeliveryDetail(**_build_delivery_members(found.delivery), body=found.body, attempts=attempts)


def _build_delivery_members(one: Delivery) -> dict[str, Any]:
    return {
        "id": one.delivery_id,
        "event_id": one.event_id,
        "event_type": one.event_type,
        "occurred_at": format_timestamp(one.occurred_at),
        "status": one.status,
        "next_attempt_at": _format_optional(one.due_at),
        "finished_at": _format_optional(one.finished_at),
        "attempt_count": one.attempt_count,
        "last_status_code": one.last_status_code,
        "last_error": one.last_error,
    }
