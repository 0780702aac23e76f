"""What time it is for the account store, and which credit month that is. Every class takes a `Clock`, so that tests turn the month."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Answers the time as an aware UTC datetime."""


def utc_now() -> datetime:
    """The time, aware, UTC."""
    return datetime.now(UTC)


def month_of(moment: datetime) -> str:
    """The credit month, `2026-11`: a calendar month in UTC (contract A10)."""
    return moment.astimezone(UTC).strftime("%Y-%m")


def day_of(moment: datetime) -> str:
    """The UTC day, `2026-11-21`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def rfc3339(moment: datetime) -> str:
    """`2026-11-21T19:44:55Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def beginning_of_month(month: str) -> datetime:
    """The first moment of `2026-11`."""
    return datetime(int(month[:4]), int(month[5:]), 1, tzinfo=UTC)


def end_of_month(month: str) -> datetime:
    """When the credits of `2026-11` lapse and new ones are granted: the first moment of the month after."""
    year, number = int(month[:4]), int(month[5:])
    return datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
