"""The date of a dump, as upstreams write it into folder and file names."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?:[-T_]?\d{2}[-:]?\d{2}[-:]?\d{2})?\d{0,3}(?!\d)")

_NUMBER = re.compile(r"\d+")
_FIRST_YEAR = "2000"
"""Digits that make an earlier date are no date of a dump."""


def date_in(name: str) -> str | None:
    """The last possible calendar date in `name` as YYYY-MM-DD: `2026-08-01`, `20260905-002519`, `20260801103000123`; None without one.

    The last, because sender ids before it may hold digits that look like a date.
    """
    found = _last_date(name)
    return found[1] if found else None


def _last_date(name: str) -> tuple[re.Match[str], str] | None:
    for match in reversed(list(_TOKEN.finditer(name))):
        try:
            return match, date(int(match[1]), int(match[2]), int(match[3])).isoformat()
        except ValueError:
            continue
    return None


def superseded(names: Iterable[str]) -> list[str]:
    """Of the files of one delivery (paths below it) those of which the delivery holds a newer dump, in order.

    A dated folder gives way to one beside it that is called the same but for a newer date (`date=2026-10-01`, `itunes20261001`), with all
    that is below it; so does a dated file to one beside it that is called the same but for date and part number. What stands alone with its
    date stays, however old: other tables may be delivered on other days.
    """
    dated: dict[str, tuple[str, str]] = {}
    newest: dict[str, str] = {}
    for name in names:
        parts = name.split("/")
        place = next((place for place, part in enumerate(parts) if (day := date_in(part)) and day >= _FIRST_YEAR), None)
        if place is None:
            continue
        match, day = _last_date(parts[place]) or (None, "")
        called = parts[place][: match.start()] + "*" + parts[place][match.end() :] if match else parts[place]
        series = "/".join([*parts[:place], _NUMBER.sub("", called) if place == len(parts) - 1 else called + "/"])
        dated[name] = series, day
        newest[series] = max(newest.get(series, ""), day)
    return sorted(name for name, (series, day) in dated.items() if day < newest[series])
