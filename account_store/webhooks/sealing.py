"""How secrets lie in the database: encrypted by the operator's keys where there are any, else as they are.

A secret must be readable to sign with, so a hash will not do. ACCOUNT_SECRET_KEYS holds Fernet keys (AES-128 and HMAC-SHA256), separated by
commas: the first encrypts, all decrypt. Without a key whoever reads the database, or a copy of it, can sign in our name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from account_store.errors import AccountError, InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS_VARIABLE = "ACCOUNT_SECRET_KEYS"
_SEALED_LABEL = "sealed:"


class SealedError(AccountError):
    """A secret was encrypted by a key that this process was not given."""

    code = "sealed"


class Seal:
    """Encrypts and decrypts secrets."""

    def __init__(self, keys: str = "") -> None:
        """`keys` as KEYS_VARIABLE holds them. InvalidValueError: one that is none (it is not told)."""
        parts = [key.strip() for key in keys.split(",") if key.strip()]
        try:
            self._fernet = MultiFernet([Fernet(key) for key in parts]) if parts else None
        except ValueError:
            raise InvalidValueError(f"{KEYS_VARIABLE}: a key is 32 bytes in url-safe base64, as Fernet.generate_key() makes them") from None

    def close(self, secret: str) -> str:
        """As it is to be stored."""
        return secret if self._fernet is None else _SEALED_LABEL + self._fernet.encrypt(secret.encode()).decode()

    def open(self, stored: str) -> str:
        """The secret. SealedError without the key."""
        if not stored.startswith(_SEALED_LABEL):
            return stored
        try:
            if self._fernet is not None:
                return self._fernet.decrypt(stored.removeprefix(_SEALED_LABEL)).decode()
        except InvalidToken:
            pass
        raise SealedError(f"a stored secret is encrypted by a key that {KEYS_VARIABLE} does not hold")


def seal_by(environment: Mapping[str, str]) -> Seal:
    """The seal with the operator's keys."""
    return Seal(environment.get(KEYS_VARIABLE, ""))
