"""What time it is for the account store, and which credit month that is. Every class takes a `Clock`, so that tests turn the month."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

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


def parsed_rfc3339(text: str) -> datetime | None:
    """The moment that RFC 3339 text names, anything before 1970 as the beginning of 1970; None when it is no such text."""
    if not _RFC3339.fullmatch(text):
        return None
    if text < "1970":
        return datetime(1970, 1, 1, tzinfo=UTC)
    try:
        # A leap second is the second before it; years end at 9999 in whatever zone.
        return datetime.fromisoformat(text.upper().replace(":60", ":59")).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def end_of_month(month: str) -> datetime:
    """When the credits of `2026-11` lapse and new ones are granted: the first moment of the month after."""
    year, number = int(month[:4]), int(month[5:])
    return datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
