"""Tests of the verification of messages, against the public library."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from music_catalog import SignatureError, verify_webhook
from music_catalog.generated.types import RequestedPing

SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes or so").decode()
NOW = 1_795_262_405
DATA = {"webhook_id": "w", "requested_at": "2026-11-21T12:00:05Z"}


def sign(body: bytes, secret: str = SECRET) -> dict[str, str]:
    signature = Webhook(secret).sign("msg_1", datetime.fromtimestamp(NOW, UTC), body.decode())
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(NOW), "Webhook-Signature": signature}


def message(event_type: str) -> bytes:
    return json.dumps({"type": event_type, "timestamp": "2026-11-21T12:00:05Z", "data": DATA}).encode()


def test_signed_message_is_an_event_with_typed_data() -> None:
    body = message("webhook.ping")
    event = verify_webhook(SECRET, sign(body), body, now=NOW + 299)
    assert (event.id, event.type, event.data) == ("msg_1", "webhook.ping", RequestedPing(**DATA))


def test_event_of_a_later_version_has_raw_data_only() -> None:
    body = message("planet.aligned")
    event = verify_webhook(SECRET, sign(body), body, now=NOW)
    assert (event.data, event.raw) == (None, DATA)


def test_second_signature_of_a_rotation_is_enough() -> None:
    body = message("webhook.ping")
    headers = sign(body)
    headers["Webhook-Signature"] = "v1,AAAA " + headers["Webhook-Signature"]
    assert verify_webhook(SECRET, headers, body, now=NOW).id == "msg_1"


@pytest.mark.parametrize("fault", ["body", "secret", "old", "header", "timestamp"])
def test_anything_else_is_refused(fault: str) -> None:
    body = message("webhook.ping")
    headers, secret, now = sign(body), SECRET, float(NOW)
    if fault == "body":
        body += b" "
    elif fault == "secret":
        secret = "whsec_" + base64.b64encode(b"another secret of 24 bytes").decode()
    elif fault == "old":
        now += 301
    elif fault == "header":
        del headers["Webhook-Signature"]
    else:
        headers["Webhook-Timestamp"] = "soon"
    with pytest.raises(SignatureError):
        verify_webhook(secret, headers, body, now=now)
