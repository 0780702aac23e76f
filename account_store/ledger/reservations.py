"""Reservations whose holder died: their credits go back to the month they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, update

from account_store.schema import credit_day, credit_month, credit_reservation, replay

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Engine

RESERVATION_SECONDS = 15 * 60
"""Far longer than any request may take."""


def return_lapsed(engine: Engine, now: datetime) -> int:
    """Give back what was reserved too long ago, forget stored answers past their time; how many reservations were returned."""
    unix = int(now.timestamp())
    with engine.begin() as connection:
        connection.execute(delete(replay).where(replay.c.expires_unix <= unix))
        lapsed = delete(credit_reservation).where(credit_reservation.c.created_unix <= unix - RESERVATION_SECONDS)
        rows = connection.execute(lapsed.returning(credit_reservation)).all()
        for row in sorted(
            rows, key=lambda row: (row.account_id, row.day)
        ):  # as all writers do: months in order, so that none waits in a ring
            month = (credit_month.c.account_id == row.account_id) & (credit_month.c.month == row.day[:7])
            connection.execute(update(credit_month).where(month).values(used=credit_month.c.used - row.credits))
            day = (credit_day.c.account_id == row.account_id) & (credit_day.c.day == row.day) & (credit_day.c.key_id == row.key_id)
            less = {"credits": credit_day.c.credits - row.credits, "requests": credit_day.c.requests - 1}
            connection.execute(update(credit_day).where(day).values(less))
    return len(rows)
