from __future__ import annotations

import pytest
from cryptography.fernet import Fernet

from account_store.errors import InvalidValueError
from account_store.webhooks.endpoints import generate_secret
from account_store.webhooks.sealing import KEYS_VARIABLE, Seal, SealedError


def test_secrets_are_encrypted_if_the_operator_has_a_key() -> None:
    secret, keys = generate_secret(), [Fernet.generate_key().decode() for _ in range(2)]
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
def test_invalid_key_is_refused_without_being_quoted(keys: str) -> None:
    with pytest.raises(InvalidValueError, match=KEYS_VARIABLE) as raised:
        Seal(keys)
    assert "hush" not in str(raised.value)
