"""Dates of dumps in folder and file names."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?:[-T_]?\d{2}[-:]?\d{2}[-:]?\d{2})?\d{0,3}(?!\d)")

_NUMBER = re.compile(r"\d+")
_FIRST_YEAR = "2000"
"""Earliest year of a dump. Digits that read as an earlier date are not a date."""


def find_date(name: str) -> str | None:
    """Return the last calendar date in `name` as YYYY-MM-DD: `2026-08-01`, `20260905-002519`, `20260801103000123`; else None.

    The last one counts, because sender ids before it may look like a date.
    """
    found = _find_last_date(name)
    return found[1] if found else None


def _find_last_date(name: str) -> tuple[re.Match[str], str] | None:
    for match in reversed(list(_TOKEN.finditer(name))):
        try:
            return match, date(int(match[1]), int(match[2]), int(match[3])).isoformat()
        # Eight digits that are not a date, such as a sender id or a release number.
        except ValueError:
            continue
    return None


def find_superseded(names: Iterable[str]) -> list[str]:
    """Return the files of one delivery (paths below it) of which it holds a newer version, in order.

    A dated folder (`date=2026-10-01`, `itunes20261001`) with all its files gives way to a folder beside it with the same name and a newer
    date. A dated file gives way to a file beside it with the same name except for date and part number. A file without a newer version
    stays, however old: other tables may be delivered on other days.
    """
    dated: dict[str, tuple[str, str]] = {}
    newest: dict[str, str] = {}
    for name in names:
        parts = name.split("/")
        # The first dated part of the path decides: files inside a dated folder belong to the date of the folder.
        place = next((place for place, part in enumerate(parts) if (day := find_date(part)) and day >= _FIRST_YEAR), None)
        if place is None:
            continue
        match, day = _find_last_date(parts[place]) or (None, "")
        # Without its date the name is the same for all versions. Part numbers go only from files, because a folder `disc2` is not a part.
        called = parts[place][: match.start()] + "*" + parts[place][match.end() :] if match else parts[place]
        series = "/".join([*parts[:place], _NUMBER.sub("", called) if place == len(parts) - 1 else called + "/"])
        dated[name] = series, day
        newest[series] = max(newest.get(series, ""), day)
    return sorted(name for name, (series, day) in dated.items() if day < newest[series])
