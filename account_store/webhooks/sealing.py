"""Encryption of secrets in the database.

Signing needs the secret itself, so a hash is not enough. Keys are Fernet keys (AES-128 and HMAC-SHA256), separated by commas. The first one
encrypts, all decrypt. Out of scope: the origin of keys (secret_keys.py).
"""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from account_store.errors import AccountError, InvalidValueError

KEYS_VARIABLE = "ACCOUNT_SECRET_KEYS"
SEALED_LABEL = "sealed:"


class SealedError(AccountError):
    """A secret was encrypted by a key that this process lacks, or there is no key to encrypt by."""

    code = "sealed"


class Seal:
    """Encrypts and decrypts secrets."""

    def __init__(self, keys: str = "", *, refusal: str = "no key is named") -> None:
        """Use `keys` in the form of KEYS_VARIABLE; `refusal` says why there is none. InvalidValueError: one is not a key (never quoted)."""
        parts = split_keys(keys)
        self._refusal = refusal
        try:
            self._fernet = MultiFernet([Fernet(key) for key in parts]) if parts else None
        except ValueError:
            raise InvalidValueError(f"{KEYS_VARIABLE}: a key is 32 bytes in url-safe base64, as Fernet.generate_key() makes them") from None

    def close(self, secret: str) -> str:
        """Encrypt a secret for storage. SealedError without a key: no secret is stored in the clear."""
        if self._fernet is None:
            raise SealedError(self._refusal)
        return SEALED_LABEL + self._fernet.encrypt(secret.encode()).decode()

    def open(self, stored: str) -> str:
        """Decrypt a stored secret. SealedError without its key."""
        # Stored before secrets were sealed. The next start seals it (secret_keys.py).
        if not stored.startswith(SEALED_LABEL):
            return stored
        try:
            if self._fernet is not None:
                return self._fernet.decrypt(stored.removeprefix(SEALED_LABEL)).decode()
        except InvalidToken:
            pass
        raise SealedError(f"a stored secret is encrypted by a key that neither {KEYS_VARIABLE} nor the key's file holds; add that key")

    def can_open(self, stored: str) -> bool:
        """Return whether the key of a stored secret is here."""
        try:
            self.open(stored)
        except SealedError:
            return False
        return True


def split_keys(keys: str) -> list[str]:
    """Return the keys in a list separated by commas."""
    return [key.strip() for key in keys.split(",") if key.strip()]
