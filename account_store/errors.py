"""Every way in which a request on the account store can fail, with a stable code. Add a class here when a caller must tell a new way apart.

What must not live here: HTTP statuses and wording for clients (`catalog_api/problems.py`).
"""

from __future__ import annotations


class AccountError(Exception):
    """A request on the account store that cannot be met; the message says which and why."""

    code = "refused"


class UnknownError(AccountError):
    """There is no such account, key, user or suggestion."""

    code = "unknown"


class TakenError(AccountError):
    """The name, e-mail or key is in use already."""

    code = "taken"


class InvalidValueError(AccountError):
    """A value that cannot be meant: an unknown plan, an empty name, a malformed e-mail."""

    code = "invalid_value"


class StateError(AccountError):
    """The thing is not in a state that allows this: a decided suggestion, a revoked key."""

    code = "wrong_state"


class KeyRevokedError(AccountError):
    """The key was revoked while a process still remembered it as good: nothing was charged."""

    code = "key_revoked"


class IdempotencyKeyReusedError(AccountError):
    """The idempotency key was used for another request within its 24 hours."""

    code = "idempotency_key_reused"


class TooManyAttemptsError(AccountError):
    """Sign-ins failed too often; `retry_after` seconds from now the next may be tried."""

    code = "too_many_attempts"

    def __init__(self, message: str, retry_after: int) -> None:
        """`retry_after`: whole seconds, at least 1."""
        super().__init__(message)
        self.retry_after = retry_after


class UnavailableError(AccountError):
    """The database cannot be reached or did not answer: try again later. Nothing is known to have been charged."""

    code = "unavailable"
