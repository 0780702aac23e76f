"""The use of an account: its requests of the last week, charts of requests and credits, errors by code, and usage as CSV.

Charts are SVG that the server draws, each with the same figures in a table. Out of scope: how requests are stored
(account_store.request_log).
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from litestar import Response, get
from litestar.exceptions import ClientException

from account_store.clock import compute_month_end, compute_month_start, format_month, read_utc_time
from account_store.request_log import HOUR, KEPT_FOR, OUTCOMES, Place, RequestFilter, classify_status
from catalog_api.dashboard.browser_session import HOME, CurrentVisit
from catalog_api.problems import CODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from account_store.request_log import HourSum
    from account_store.usage import DayUse

_ON_A_PAGE = 50
_LONGEST_FILTER = 200
_PLACE = re.compile(r"(\d{1,18})-(\d{1,9})", re.ASCII)
_MONTH = re.compile(r"20\d\d-(0[1-9]|1[0-2])", re.ASCII)
_MONTHS_BACK = 12
_CHART_HEIGHT = 100
_HOURS = int(KEPT_FOR.total_seconds()) // HOUR + 1
"""Hours of a chart: the present one and those of a week before."""


@dataclass
class Figures:
    """Sums of some requests; milliseconds are those of all together."""

    requests: int = 0
    credits: int = 0
    milliseconds: float = 0.0
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))

    def add(self, one: HourSum) -> None:
        """Add the sums of an hour."""
        self.requests += one.requests
        self.credits += one.credits
        self.milliseconds += one.microseconds / 1000
        self.outcomes[classify_status(one.status)] += one.requests


@dataclass(frozen=True)
class Bar:
    """A part of a column of a chart, in a box of one unit by 100 for each column."""

    left: int
    top: float
    height: float
    kind: str
    words: str


@get("/requests")
async def show_requests(visit: CurrentVisit) -> Response[Any]:
    """Show the account's requests of the last week, newest first, those that the filter accepts."""
    asked = {name: visit.request.query_params.get(name, "").strip()[:_LONGEST_FILTER] for name in ("route", "outcome", "code", "key", "id")}
    wanted = RequestFilter(
        route=asked["route"],
        outcome=asked["outcome"] if asked["outcome"] in OUTCOMES else "",
        code=asked["code"],
        key_id=int(asked["key"]) if re.fullmatch(r"\d{1,9}", asked["key"], re.ASCII) else None,
        request_id=asked["id"],
    )
    place = _PLACE.fullmatch(visit.request.query_params.get("before", ""))
    before = Place(int(place[1]), int(place[2])) if place else None
    accounts, account_id = visit.service.accounts, visit.person.account_id
    page, keys = await visit.context.store.run(
        lambda: (
            accounts.requests.read_page(account_id, wanted, limit=_ON_A_PAGE, before=before),
            accounts.keys.list_summaries(account_id),
        )
    )
    following = page.following
    older = f"{HOME}/requests?" + urlencode({**asked, "before": f"{following.batch_id}-{following.position}"}) if following else ""
    names = {key.key_id: key.label or f"{key.prefix}…" for key in keys}
    times = [datetime.fromtimestamp(one.happened_at, UTC) for one in page.requests]
    return visit.render(
        "requests.html", requests=list(zip(times, page.requests, strict=True)), older=older, asked=asked, names=names, outcomes=OUTCOMES
    )


@get("/usage")
async def show_usage(visit: CurrentVisit) -> Response[Any]:
    """Show credits by day of a month, and requests of the last week by hour, error and route."""
    accounts, account_id = visit.service.accounts, visit.person.account_id
    month = _read_month(visit)
    statement, hours = await visit.context.store.run(
        lambda: (accounts.usage.read_month_now(account_id, month), accounts.requests.read_hours(account_id))
    )
    first = int(read_utc_time().timestamp()) // HOUR * HOUR - (_HOURS - 1) * HOUR
    recent = [one for one in hours if one.hour >= first]
    by_hour: defaultdict[int, Figures] = defaultdict(Figures)
    by_route: defaultdict[str, Figures] = defaultdict(Figures)
    by_code: defaultdict[str, Figures] = defaultdict(Figures)
    for one in recent:
        by_hour[one.hour].add(one)
        by_route[f"{one.method} {one.route}"].add(one)
        if one.code:
            by_code[one.code].add(one)
    days = _sum_days(statement.days)
    return visit.render(
        "usage.html",
        month=statement,
        months=_list_months(),
        days=days,
        day_bars=_draw_days(days, month),
        day_count=_count_days(month),
        hours=[(datetime.fromtimestamp(hour, UTC), figures) for hour, figures in sorted(by_hour.items(), reverse=True)],
        hour_bars=_draw_hours(by_hour, first),
        hour_count=_HOURS,
        most=max((figures.requests for figures in by_hour.values()), default=0),
        routes=_rank(by_route),
        errors=[(code, CODES[code].title if code in CODES else "", figures) for code, figures in _rank(by_code)],
        outcomes=OUTCOMES,
    )


@get("/usage.csv")
async def send_usage_file(visit: CurrentVisit) -> Response[bytes]:
    """Send the use of a month by day and key, as CSV."""
    month = _read_month(visit)
    statement = await visit.context.store.run(visit.service.accounts.usage.read_month_now, visit.person.account_id, month)
    file = io.StringIO()
    rows = csv.writer(file)
    rows.writerow(["day", "key_id", "key_prefix", "credits", "requests"])
    rows.writerows([one.day, one.key_id, one.key_prefix, one.credits, one.requests] for one in statement.days)
    headers = {"content-disposition": f'attachment; filename="usage_{month}.csv"'}
    return Response(file.getvalue().encode(), media_type="text/csv; charset=utf-8", headers=headers)


def _read_month(visit: CurrentVisit) -> str:
    month: str = visit.request.query_params.get("month", "") or format_month(read_utc_time())
    if not _MONTH.fullmatch(month):
        raise ClientException("A month is written as 2026-11.")
    return month


def _list_months() -> list[str]:
    """Return the present month and those before it, newest first."""
    now = read_utc_time()
    numbers = range(now.year * 12 + now.month - 1, now.year * 12 + now.month - 1 - _MONTHS_BACK, -1)
    return [f"{number // 12}-{number % 12 + 1:02}" for number in numbers]


def _count_days(month: str) -> int:
    return (compute_month_end(month) - compute_month_start(month)).days


def _sum_days(uses: Iterable[DayUse]) -> list[tuple[date, int, int]]:
    """Return credits and requests of each day with use, newest first."""
    days: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in uses:
        days[one.day][0] += one.credits
        days[one.day][1] += one.requests
    return [(date.fromisoformat(day), credits_, requests) for day, (credits_, requests) in sorted(days.items(), reverse=True)]


def _draw_days(days: Sequence[tuple[date, int, int]], month: str) -> list[Bar]:
    """Draw credits by day, the first day of the month on the left."""
    first = compute_month_start(month).date()
    most = max((credits_ for _, credits_, _ in days), default=0) or 1
    heights = [(day, credits_, credits_ * _CHART_HEIGHT / most) for day, credits_, _ in days]
    return [
        Bar((day - first) // timedelta(days=1), _CHART_HEIGHT - high, high, "success", f"{day}: {used:,}") for day, used, high in heights
    ]


def _draw_hours(by_hour: Mapping[int, Figures], first: int) -> list[Bar]:
    """Draw requests by hour, the outcomes on top of each other, the hour `first` on the left."""
    most = max((figures.requests for figures in by_hour.values()), default=0)
    bars = []
    for hour, figures in sorted(by_hour.items()):
        top = float(_CHART_HEIGHT)
        for outcome, count in figures.outcomes.items():
            height = count * _CHART_HEIGHT / most
            top -= height
            if count:
                words = f"{datetime.fromtimestamp(hour, UTC):%d %B, %H:00}: {count:,} {outcome}"
                bars.append(Bar((hour - first) // HOUR, top, height, outcome, words))
    return bars


def _rank(sums: Mapping[str, Figures]) -> list[tuple[str, Figures]]:
    """Return the names with their figures, most requests first."""
    return sorted(sums.items(), key=lambda one: (-one[1].requests, one[0]))


PAGES = [show_requests, show_usage, send_usage_file]
