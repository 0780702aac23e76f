"""Verification of the messages of webhooks (Standard Webhooks 1.0)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from music_catalog.errors import SignatureError
from music_catalog.generated.messages import EVENT_DATA, EventData

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE_SECONDS = 300.0
"""Older and newer messages are refused: they may be replays of recorded ones."""


@dataclass(frozen=True)
class Event:
    """A verified message. `id` is the same in every repeat; `data` is None for a type that this client does not know."""

    id: str
    type: str
    timestamp: str
    data: EventData | None
    raw: dict[str, Any]


class _Message(msgspec.Struct):
    type: str
    timestamp: str
    data: dict[str, Any]


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, *, now: float | None = None, tolerance: float = TOLERANCE_SECONDS
) -> Event:
    """Return the event of a message that the secret signed. SignatureError: do not trust it; answer 400.

    `body` must be the unchanged bytes. `now` is in seconds since 1970, the clock's unless given.
    """
    found = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, sent_at, signatures = (found[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
        key, moment = base64.b64decode(secret.removeprefix("whsec_"), validate=True), int(sent_at)
    except KeyError as error:
        raise SignatureError(f"the message has no header {error}") from None
    except (binascii.Error, ValueError):
        raise SignatureError("the secret is not one of a webhook, or the timestamp is no number") from None
    if abs((time.time() if now is None else now) - moment) > tolerance:
        raise SignatureError(f"the message of {sent_at} is more than {tolerance:.0f} seconds off: check the clock")
    signed = f"{message_id}.{sent_at}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    # During a rotation there are two signatures.
    if not any(hmac.compare_digest(expected, one.encode()) for one in signatures.split()):
        raise SignatureError("no signature fits: the secret is another webhook's, or the body was changed")
    message = msgspec.json.decode(body, type=_Message)
    kind = EVENT_DATA.get(message.type)
    data = None if kind is None else msgspec.convert(message.data, kind)
    return Event(message_id, message.type, message.timestamp, data, message.data)
