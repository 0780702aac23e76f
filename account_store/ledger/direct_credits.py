"""Credits that change in a transaction of the caller, together with rows of its own: those of bulk jobs and of expired reservations.

The writer of the ledger commits many requests at once; these changes are rare. All lock months as it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from account_store.clock import format_day
from account_store.schema import credit_day, credit_month

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection


def take_available(connection: Connection, account_id: int, key_id: int, credits_: int, *, allowed: int, now: datetime) -> tuple[int, str]:
    """Take `credits_` of the month, or the rest of it when that is less; return (credits taken, the day to which they count)."""
    day = format_day(now)
    place = (credit_month.c.account_id == account_id) & (credit_month.c.month == day[:7])
    lock = select(credit_month.c.used).where(place).with_for_update()
    used = connection.scalar(lock)
    if used is None:
        _insert_unless_there(connection, credit_month.insert().values(account_id=account_id, month=day[:7], used=0, allowed=allowed))
        used = connection.scalar(lock) or 0
    granted = max(0, min(credits_, allowed - used))
    connection.execute(update(credit_month).where(place).values(used=used + granted, allowed=allowed))
    if granted:
        _insert_unless_there(connection, credit_day.insert().values(account_id=account_id, day=day, key_id=key_id, credits=0, requests=0))
        _add_to_day(connection, account_id, key_id, day, granted, 1)
    return granted, day


def give_back(connection: Connection, account_id: int, key_id: int, day: str, credits_: int) -> None:
    """Give the credits of one request back to the month and day from which they were taken."""
    place = (credit_month.c.account_id == account_id) & (credit_month.c.month == day[:7])
    connection.execute(update(credit_month).where(place).values(used=credit_month.c.used - credits_))
    _add_to_day(connection, account_id, key_id, day, -credits_, -1)


def _add_to_day(connection: Connection, account_id: int, key_id: int, day: str, credits_: int, requests: int) -> None:
    place = (credit_day.c.account_id == account_id) & (credit_day.c.day == day) & (credit_day.c.key_id == key_id)
    more = {"credits": credit_day.c.credits + credits_, "requests": credit_day.c.requests + requests}
    connection.execute(update(credit_day).where(place).values(more))


def _insert_unless_there(connection: Connection, insert: object) -> None:
    try:
        # A savepoint, because PostgreSQL refuses all further statements of a transaction in which one failed.
        with connection.begin_nested():
            connection.execute(insert)  # type: ignore[call-overload]
    except IntegrityError:
        pass
