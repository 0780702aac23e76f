"""Tokens that are good for one use within a time: links to reset a password or to join an account, and sign-ins that await a code.

The database holds hashes only. Out of scope: what a token permits (users.py, team.py, second_factor.py).
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select

from account_store.schema import one_time_token

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from sqlalchemy import Connection, Row

RESET, INVITATION, SECOND_FACTOR = "reset", "invitation", "second_factor"
"""Purposes. A token of one purpose is unknown to the others."""


def hash_token(token: str) -> str:
    """Return the hash under which a random token is stored. A guess at 32 random bytes needs no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def issue_token(connection: Connection, purpose: str, now: datetime, lasts: timedelta, **columns: Any) -> str:  # noqa: ANN401 - of any column
    """Store a new token with the columns of its row and return it; remove expired ones."""
    connection.execute(delete(one_time_token).where(one_time_token.c.expires_at <= now))
    token = secrets.token_urlsafe(32)
    values = {"token_hash": hash_token(token), "purpose": purpose, "expires_at": now + lasts, **columns}
    connection.execute(one_time_token.insert().values(values))
    return token


def find_token(connection: Connection, purpose: str, token: str, now: datetime, *, is_used: bool = False) -> Row[Any] | None:
    """Return the row of a valid token, else None. `is_used` removes it: of two uses at once, one gets None."""
    columns = one_time_token.c
    is_it = (columns.token_hash == hash_token(token)) & (columns.purpose == purpose) & (columns.expires_at > now)
    row = connection.execute(select(one_time_token).where(is_it)).one_or_none()
    if row is not None and is_used and not connection.execute(delete(one_time_token).where(is_it)).rowcount:
        return None
    return row


def remove_tokens(connection: Connection, user_id: int, purpose: str | None = None) -> None:
    """Remove the tokens of a user, by default of all purposes."""
    own = one_time_token.c.user_id == user_id
    connection.execute(delete(one_time_token).where(own if purpose is None else own & (one_time_token.c.purpose == purpose)))
