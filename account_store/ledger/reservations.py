"""Expiry of reservations: the credits of one that nobody settled go back to the month they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete

from account_store.ledger.direct_credits import give_back
from account_store.schema import credit_reservation, replay

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Engine

RESERVATION_SECONDS = 15 * 60
"""Far longer than any request may take: a live request still finds its reservation when it settles."""


def expire_reservations(engine: Engine, now: datetime) -> int:
    """Give expired reservations back and delete expired idempotency keys; return the number of reservations given back."""
    unix = int(now.timestamp())
    with engine.begin() as connection:
        connection.execute(delete(replay).where(replay.c.expires_unix <= unix))
        expired = delete(credit_reservation).where(credit_reservation.c.created_unix <= unix - RESERVATION_SECONDS)
        rows = connection.execute(expired.returning(credit_reservation)).all()
        # All writers lock months in this order, so two writers never wait for each other.
        for row in sorted(rows, key=lambda row: (row.account_id, row.day)):
            give_back(connection, row.account_id, row.key_id, row.day, row.credits)
    return len(rows)
