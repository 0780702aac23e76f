"""The date of a dump, as upstreams write it into folder and file names."""

from __future__ import annotations

import re
from datetime import date

_TOKEN = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?:[-T_]?\d{2}[-:]?\d{2}[-:]?\d{2})?\d{0,3}(?!\d)")


def date_in(name: str) -> str | None:
    """The last possible calendar date in `name` as YYYY-MM-DD: `2026-08-01`, `20260905-002519`, `20260801103000123`; None without one.

    The last, because sender ids before it may hold digits that look like a date.
    """
    for match in reversed(list(_TOKEN.finditer(name))):
        try:
            return date(int(match[1]), int(match[2]), int(match[3])).isoformat()
        except ValueError:
            continue
    return None
