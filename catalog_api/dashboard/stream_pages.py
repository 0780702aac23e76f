"""Live streams: what is on now, a stream's day, the airplay report. Registering and stopping go through `/v1`; they cost no credits.

The browser reloads the page every REFRESH_SECONDS, which can be paused. Out of scope: formats of the report
(catalog_api/airplay).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from account_store.clock import read_utc_time
from account_store.errors import UnknownError
from account_store.streams.registry import ACTIVE, LONGEST_NAME, LONGEST_URL
from catalog_api.airplay.report_formats import FORMATS, JSON_TYPE
from catalog_api.airplay.stream_sheets import MOST_DAYS, Window
from catalog_api.airplay.track_names import describe_aired_tracks
from catalog_api.answers import Answer
from catalog_api.dashboard.browser_session import HOME, CurrentVisit, Visit
from catalog_api.dashboard.internal_requests import ApiResponse, check_path_segment
from catalog_api.parameters import FROM, TIMEZONE, UNTIL, raise_problems, read_parameters
from catalog_api.problems import ApiError
from catalog_api.routes.airplay_report import find_window_problems, start_report
from catalog_api.routes.streams import build_streams

if TYPE_CHECKING:
    from account_store.streams.history import Airing, Gap
    from catalog_api.wire.stream_types import AiredTrack

REFRESH_SECONDS = 20
MOST_ON_AIR = 200
"""Streams on the page of what is on now."""
MOST_AIRINGS = 1500
"""Airings of a day that are shown."""
_PAGE = 50
_API = "/v1/streams"
_PAGES = f"{HOME}/streams"
_DAY = timedelta(days=1)
_WINDOW = (FROM, UNTIL, TIMEZONE)


@dataclass(frozen=True)
class Bar:
    """An interval of a day, from `start` to `start + width`, in minutes since midnight."""

    start: float
    width: float
    words: str


@get("/streams")
async def show_streams(visit: CurrentVisit) -> Response[Any]:
    """Show the account's streams, newest first, and what is on."""
    cursor = visit.request.query_params.get("cursor", "")
    answer = (await visit.request_api(_API, {"limit": _PAGE} | ({"cursor": cursor} if cursor else {}))).raise_if_refused()
    caller, _ = await visit.find_caller()
    month = await visit.context.store.run(visit.service.accounts.usage.read_month_now, caller.account_id)
    return visit.render("streams.html", answer=answer, has_card=caller.has_card, month=month, refresh=_choose_refresh_seconds(visit))


@get("/streams/on-air")
async def show_on_air(visit: CurrentVisit) -> Response[Any]:
    """Show what each active stream plays now, in one table: streams that play a known track first."""
    read = visit.service.accounts.streams.read_page
    found = await visit.context.store.run(read, visit.person.account_id, status=ACTIVE, limit=MOST_ON_AIR + 1)
    shown = await build_streams(visit.service, found[:MOST_ON_AIR])
    shown.sort(key=lambda one: (one.now_playing is None, one.name.casefold(), one.id))
    return visit.render(
        "on_air.html", streams=shown, is_cut=len(found) > MOST_ON_AIR, most=MOST_ON_AIR, refresh=_choose_refresh_seconds(visit)
    )


@get("/streams/new")
async def show_stream_form(visit: CurrentVisit) -> Response[Any]:
    """Show the form for a new stream; without a payment card it says what is missing."""
    return await _render_form(visit)


@post("/streams", status_code=200)
async def create_stream(visit: CurrentVisit) -> Response[Any]:
    """Start monitoring. The form carries an idempotency key: sent twice, it is one stream."""
    body = {name: visit.form.get(name, "").strip() for name in ("url", "name")}
    answer = await visit.request_api(_API, body=body, idempotency_key=visit.form.get("once", ""))
    return visit.redirect(f"{_PAGES}/{answer.document['id']}") if answer.is_ok else await _render_form(visit, answer)


@get("/streams/report")
async def show_report_form(visit: CurrentVisit) -> Response[Any]:
    """Show the form for the days of a report; once they are valid, also links to its files."""
    assert visit.person  # noqa: S101 - refuses who is not signed in
    asked = {name: visit.request.query_params.get(name, "").strip() for name in ("from", "until", "timezone")}
    problems = {}
    if asked["from"] or asked["until"]:
        try:
            _read_window(visit)
        except ApiError as error:
            problems = {one.name: f"{one.message[0].upper()}{one.message[1:]}." for one in error.problems}
    is_made = bool(asked["from"] or asked["until"]) and not problems
    today = read_utc_time().date()
    defaults = {"from": str(today.replace(day=1)), "until": str(today), "timezone": "UTC"}
    links = {name: f"{_PAGES}/report/file?" + urlencode({**asked, "form": media_type}) for media_type, name in FORMATS.items()}
    values = {"asked": {name: text or defaults[name] for name, text in asked.items()}, "problems": problems, "most_days": MOST_DAYS}
    return visit.render("report.html", 400 if problems else 200, links=links if is_made else {}, **values)


@get("/streams/report/file")
async def send_report_file(visit: CurrentVisit) -> Answer:
    """Send the report as a file, as `GET /v1/streams/report` answers it."""
    account_id, window = visit.person.account_id, _read_window(visit)
    form = visit.request.query_params.get("form", JSON_TYPE)
    # Not through `request_api`, which holds whole answers: a report has hundreds of MB.
    answer = await start_report(visit.service, account_id, window, form if form in FORMATS else JSON_TYPE)
    name = f"airplay_{window.first}_{window.last}.{FORMATS.get(form, 'json')}"
    answer.headers |= {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return answer


@get("/streams/{stream_id:str}")
async def show_stream(visit: CurrentVisit, stream_id: FromPath[str]) -> Response[Any]:
    """Show a stream and what aired on it on a day (UTC): today unless `day` names another."""
    answer = (await visit.request_api(f"{_API}/{check_path_segment(stream_id)}")).raise_if_refused()
    today = read_utc_time().date()
    day = _parse_date(visit.request.query_params.get("day", "")) or today
    aired, tracks, gaps = await visit.context.store.run(_read_day, visit, stream_id, day)
    values: dict[str, Any] = {
        "bars": [_build_airing_bar(one, tracks[one.airing_id], day) for one in aired],
        "gap_bars": [_build_gap_bar(gap, day) for gap in gaps],
    }
    days: dict[str, Any] = {"day": day, "before": day - _DAY, "after": day + _DAY if day < today else None, "is_today": day == today}
    # A past day or a stopped stream does not change.
    refresh = _choose_refresh_seconds(visit) if day == today and answer.document["status"] == "active" else 0
    return visit.render(
        "stream.html",
        stream=answer.document,
        aired=aired[::-1],
        tracks=tracks,
        gaps=gaps,
        refresh=refresh,
        now=read_utc_time(),
        **values,
        **days,
    )


@post("/streams/{stream_id:str}/stop", status_code=200)
async def stop_stream(visit: CurrentVisit, stream_id: FromPath[str]) -> Response[Any]:
    """Stop monitoring it."""
    (await visit.request_api(f"{_API}/{check_path_segment(stream_id)}", method="DELETE")).raise_if_refused()
    return visit.redirect(f"{_PAGES}/{check_path_segment(stream_id)}")


async def _render_form(visit: Visit, answer: ApiResponse | None = None) -> Response[Any]:
    caller, _ = await visit.find_caller()
    # `once` is the idempotency key of this copy of the form: a reload that sends it again repeats the key.
    values = {"longest_url": LONGEST_URL, "longest_name": LONGEST_NAME, "once": secrets.token_urlsafe(16)}
    price = visit.service.accounts.plans.stream_month_price_eur
    status = 200 if answer is None else answer.status
    return visit.render("stream_new.html", status, answer=answer, form_values=visit.form, has_card=caller.has_card, price=price, **values)


def _choose_refresh_seconds(visit: Visit) -> int:
    """Return the seconds until the page reloads itself; 0 for never."""
    return 0 if visit.request.query_params.get("still") else REFRESH_SECONDS


def _parse_date(text: str) -> date | None:
    """Parse a day as reports do; None for anything else."""
    try:
        return FROM.reader(text)
    except ValueError:
        return None


def _read_window(visit: Visit) -> Any:  # noqa: ANN401 - a Window
    asked, problems = read_parameters(_WINDOW, (), visit.request.scope, is_strict=False)
    raise_problems([*problems, *find_window_problems(asked)])
    return Window(asked[FROM], asked[UNTIL], asked[TIMEZONE])


def _read_day(visit: Visit, stream_id: str, day: date) -> tuple[list[Airing], dict[int, AiredTrack], list[Gap]]:
    """Return the airings that began on the day, oldest first, their tracks, and the gaps of the day."""
    accounts = visit.service.accounts
    since = datetime.combine(day, time(), UTC)
    try:
        # The history does not ask whose stream it is.
        accounts.streams.get(visit.person.account_id, stream_id)
    except UnknownError:
        raise NotFoundException("There is no such stream.") from None
    # The store lists airings newest first.
    aired = accounts.history.read_page(stream_id, limit=MOST_AIRINGS, since=since, until=since + _DAY)[::-1]
    gaps = accounts.history.list_gaps(stream_id, since, since + _DAY)
    with visit.service.live.hold() as catalog:
        return aired, describe_aired_tracks(catalog, aired), gaps


def _build_airing_bar(one: Airing, track: AiredTrack, day: date) -> Bar:
    midnight = datetime.combine(day, time(), UTC)
    start = (one.started_at - midnight).total_seconds() / 60
    # An airing may last beyond midnight; the day has 1440 minutes.
    return Bar(start, min(one.duration_seconds / 60, 1440 - start), f"{one.started_at:%H:%M} {track.artist}: {track.title}")


def _build_gap_bar(gap: Gap, day: date) -> Bar:
    midnight = datetime.combine(day, time(), UTC)
    end = min(gap.ended_at or read_utc_time(), midnight + _DAY)
    start = max(gap.started_at, midnight)
    minutes = (start - midnight).total_seconds() / 60
    return Bar(minutes, max((end - start).total_seconds() / 60, 0), f"{start:%H:%M} nobody listened")


PAGES = [show_streams, show_on_air, show_stream_form, create_stream, show_report_form, send_report_file, show_stream, stop_stream]
