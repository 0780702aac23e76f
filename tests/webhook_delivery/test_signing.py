from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

from webhook_delivery.signing import sign_headers


def test_signature_follows_the_standard() -> None:
    key, body = bytes(range(32)), '{"type":"catalog.published","data":"ü"}'
    secrets = ["whsec_" + base64.b64encode(key).decode(), "whsec_" + base64.b64encode(key[::-1]).decode()]
    at = datetime(2026, 11, 21, 12, 0, 0, 999_999, tzinfo=UTC)
    headers = sign_headers("msg_1", body, at, secrets)
    signed = f"msg_1.1795262400.{body}".encode()
    expected = [base64.b64encode(hmac.new(one, signed, hashlib.sha256).digest()).decode() for one in (key, key[::-1])]
    assert headers == {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1795262400",
        "webhook-signature": f"v1,{expected[0]} v1,{expected[1]}",
    }
