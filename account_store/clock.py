"""The account store's clock and credit months. Every class takes a `Clock`, so that tests can change the month."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

Clock = Callable[[], datetime]
"""Returns the time as an aware UTC datetime."""


def read_utc_time() -> datetime:
    """Return the time: aware, UTC."""
    return datetime.now(UTC)


def format_month(moment: datetime) -> str:
    """Return the credit month, `2026-11`: a calendar month in UTC (contract A10)."""
    return moment.astimezone(UTC).strftime("%Y-%m")


def format_day(moment: datetime) -> str:
    """Return the UTC day, `2026-11-21`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def format_rfc3339(moment: datetime) -> str:
    """Format a moment as `2026-11-21T19:44:55Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def compute_month_start(month: str) -> datetime:
    """Return the first moment of a month such as `2026-11`."""
    return datetime(int(month[:4]), int(month[5:]), 1, tzinfo=UTC)


def parse_rfc3339(text: str) -> datetime | None:
    """Parse RFC 3339 text; return None for any other text. Moments before 1970 become the beginning of 1970."""
    if not _RFC3339.fullmatch(text):
        return None
    if text < "1970":
        return datetime(1970, 1, 1, tzinfo=UTC)
    try:
        # A leap second becomes the second before it. Years end at 9999 in any zone.
        return datetime.fromisoformat(text.upper().replace(":60", ":59")).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def compute_month_end(month: str) -> datetime:
    """Return when the credits of a month such as `2026-11` lapse: the first moment of the next month."""
    year, number = int(month[:4]), int(month[5:])
    return datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
