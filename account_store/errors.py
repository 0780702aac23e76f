"""The errors of the account store, each with a stable code. Add a class when callers must distinguish a new failure.

Out of scope: HTTP statuses and wording for clients (`catalog_api/problems.py`).
"""

from __future__ import annotations


class AccountError(Exception):
    """A request that the account store refuses; the message gives the reason."""

    code = "refused"


class UnknownError(AccountError):
    """There is no such account, key, user or suggestion."""

    code = "unknown"


class TakenError(AccountError):
    """The name, e-mail or key is in use already."""

    code = "taken"


class InvalidValueError(AccountError):
    """A value is invalid: an unknown plan, an empty name, a malformed e-mail."""

    code = "invalid_value"


class StateError(AccountError):
    """The present state does not allow this: a decided suggestion, a revoked key."""

    code = "wrong_state"


class KeyRevokedError(AccountError):
    """The key was revoked while a process still had it cached as live: nothing was charged."""

    code = "key_revoked"


class IdempotencyKeyReusedError(AccountError):
    """The idempotency key was used for another request within its 24 hours."""

    code = "idempotency_key_reused"


class TooManyAttemptsError(AccountError):
    """Sign-ins failed too often; the next attempt is allowed after `retry_after` seconds."""

    code = "too_many_attempts"

    def __init__(self, message: str, retry_after: int) -> None:
        """Keep `retry_after`: whole seconds, at least 1."""
        super().__init__(message)
        self.retry_after = retry_after


class UnavailableError(AccountError):
    """The database or the credit writer does not answer: try again later. Nothing is known to have been charged."""

    code = "unavailable"
