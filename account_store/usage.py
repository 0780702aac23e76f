"""Monthly statements of use, for `/v1/usage`, the dashboard and the operator. Reads only."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select

from account_store.clock import compute_month_end, compute_month_start, format_month
from account_store.database import connect_for_reads
from account_store.errors import InvalidValueError
from account_store.schema import api_key, credit_day, credit_month
from account_store.streams.heard_months import is_heard_in
from account_store.streams.stream_tables import stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from decimal import Decimal

    from sqlalchemy import Connection, Engine

    from account_store.account import Account
    from account_store.clock import Clock

_MONTH = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class DayUse:
    """The use of one key on one UTC day."""

    day: str
    key_id: int
    key_prefix: str
    credits: int
    requests: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One account's calendar month."""

    account_id: int
    account: str
    month: str
    plan: str
    """The present plan, not that of the month."""
    price_eur: Decimal
    """Price of the present plan a month, or a year when `is_yearly`."""
    is_yearly: bool
    allowed: int
    """Credits of the month: by the present plan for this month, as at its last charge for an earlier one."""
    used: int
    remaining: int
    resets_at: datetime
    stream_months: int
    """Streams that were active and heard in the month, each counted once: the basis of billing."""
    stream_month_price_eur: Decimal
    stream_price_eur: Decimal
    """Price of all stream-months, added to the plan's."""
    days: list[DayUse]
    """Oldest first; their credits add up to `used`."""


class Usage:
    """Statements of one database."""

    def __init__(self, engine: Engine, find_account: Callable[[int], Account], stream_month_price_eur: Decimal, clock: Clock) -> None:
        """Read accounts by `find_account`."""
        self._engine = engine
        self._stream_month_price_eur = stream_month_price_eur
        self._find_account = find_account
        self._clock = clock

    async def read_month(self, account_id: int, month: str | None = None) -> Statement:
        """Return the statement of a month, for an event loop."""
        return await asyncio.to_thread(self.read_month_now, account_id, month)

    def read_month_now(self, account_id: int, month: str | None = None) -> Statement:
        """Return the statement of `month` (`2026-11`; by default the present one). UnknownError: no such account."""
        present = format_month(self._clock())
        month = month or present
        if not _MONTH.fullmatch(month):
            raise InvalidValueError(f"a month is written 2026-11, got {month!r}")
        account = self._find_account(account_id)
        with connect_for_reads(self._engine) as connection:
            query = select(credit_month).where(credit_month.c.account_id == account_id, credit_month.c.month == month)
            row = connection.execute(query).one_or_none()
            # Days compare as text, and `-99` sorts after every day of the month.
            days = [DayUse(*day) for day in connection.execute(_DAYS, {"account_id": account_id, "start": month, "end": month + "-99"})]
            stream_months = self._count_stream_months(connection, account_id, month)
        used = row.used if row else 0
        # The plan may have changed since a past month, whose last charge recorded its allowance.
        allowed = account.plan.credits if month == present or row is None else row.allowed
        price = account.plan.yearly_price_eur if account.is_yearly else account.plan.price_eur
        credits_ = (allowed, used, max(allowed - used, 0), compute_month_end(month))
        streams = (stream_months, self._stream_month_price_eur, stream_months * self._stream_month_price_eur)
        return Statement(account_id, account.name, month, account.plan.name, price, account.is_yearly, *credits_, *streams, days)

    def _count_stream_months(self, connection: Connection, account_id: int, month: str) -> int:
        """Count heard streams. One that begins as the month ends counts for the next; one stopped as a month begins counts for it, too."""
        begins, ends = compute_month_start(month), compute_month_end(month)
        # Active streams have no end, so they would count for months ahead.
        if begins > self._clock():
            return 0
        was_active = (stream.c.created_at < ends) & (stream.c.stopped_at.is_(None) | (stream.c.stopped_at >= begins))
        counted = select(func.count()).select_from(stream).where(stream.c.account_id == account_id, was_active, is_heard_in(month))
        return connection.scalar(counted) or 0


_DAYS = (
    select(credit_day.c.day, credit_day.c.key_id, api_key.c.prefix, credit_day.c.credits, credit_day.c.requests)
    .join(api_key, api_key.c.key_id == credit_day.c.key_id)
    .where(credit_day.c.account_id == bindparam("account_id"), credit_day.c.day.between(bindparam("start"), bindparam("end")))
    .order_by(credit_day.c.day, credit_day.c.key_id)
)
