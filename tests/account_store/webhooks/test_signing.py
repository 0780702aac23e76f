from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest
from cryptography.fernet import Fernet

from account_store.errors import InvalidValueError
from account_store.webhooks.sealing import KEYS_VARIABLE, Seal, SealedError
from account_store.webhooks.signing import new_secret, signed_headers


def test_a_signature_is_what_the_standard_says() -> None:
    key, body = bytes(range(32)), '{"type":"catalog.published","data":"ü"}'
    secrets = ["whsec_" + base64.b64encode(key).decode(), "whsec_" + base64.b64encode(key[::-1]).decode()]
    at = datetime(2026, 11, 21, 12, 0, 0, 999_999, tzinfo=UTC)
    headers = signed_headers("msg_1", body, at, secrets)
    signed = f"msg_1.1795262400.{body}".encode()
    expected = [base64.b64encode(hmac.new(one, signed, hashlib.sha256).digest()).decode() for one in (key, key[::-1])]
    assert headers == {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1795262400",
        "webhook-signature": f"v1,{expected[0]} v1,{expected[1]}",
    }


def test_secrets_lie_encrypted_where_the_operator_has_a_key() -> None:
    secret, keys = new_secret(), [Fernet.generate_key().decode() for _ in range(2)]
    keyless, first, both, second = Seal(), Seal(keys[0]), Seal(f"{keys[1]}, {keys[0]}"), Seal(keys[1])
    assert keyless.open(secret) == secret
    with pytest.raises(SealedError):
        keyless.close(secret)
    stored = first.close(secret)
    assert secret not in stored
    assert stored != first.close(secret)
    assert first.open(stored) == both.open(stored) == secret
    assert second.open(both.close(secret)) == secret, "the first key encrypts"
    assert first.open(secret) == secret, "what was stored before there was a key"
    for stranger in (keyless, second):
        with pytest.raises(SealedError, match=KEYS_VARIABLE):
            stranger.open(stored)


@pytest.mark.parametrize("keys", ["hush", "aHVzaA==", f"{'A' * 43}=,hush"])
def test_what_is_no_key_is_refused_without_being_told(keys: str) -> None:
    with pytest.raises(InvalidValueError, match=KEYS_VARIABLE) as raised:
        Seal(keys)
    assert "hush" not in str(raised.value)
