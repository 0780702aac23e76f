"""The airplay report (specification 2.9, 4.14, contract G7). Free; limits of the window are those of the specification, part 8."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from account_store.api_keys import Caller
from catalog_api.airplay.report_formats import CONTENT_TYPES, CSV, FORMATS, PARQUET, choose_format, write_csv, write_json, write_parquet
from catalog_api.airplay.stream_sheets import MOST_DAYS, Window, read_sheets
from catalog_api.airplay.streamed_answer import StreamedAnswer
from catalog_api.answers import Answer
from catalog_api.metering import FreeQuestion, Question
from catalog_api.parameters import ACCEPT, FROM, TIMEZONE, UNTIL, ParameterValues
from catalog_api.problems import ApiError, ParameterProblem
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.wire.stream_types import AirplayReport


def find_window_problems(values: ParameterValues) -> list[ParameterProblem]:
    """Find the problems of the two days together. Other code reports an invalid day."""
    first: date | None = values[FROM]
    last: date | None = values[UNTIL]
    if first is None or last is None:
        return []
    days = Window(first, last, values[TIMEZONE]).days
    if days < 1:
        return [ParameterProblem("query", "from", f"must not be after until, {last}")]
    if days > MOST_DAYS:
        return [ParameterProblem("query", name, f"must span at most {MOST_DAYS} days, got {days}") for name in ("from", "until")]
    return []


@get_route(
    "/v1/streams/report",
    AirplayReport,
    tag="Streams",
    summary="Airplay report",
    parameters=(FROM, UNTIL, TIMEZONE, ACCEPT),
    is_free=True,
    is_about_catalog=False,
    other_types=(CSV, PARQUET),
    checks=(find_window_problems,),
)
def report(values: ParameterValues) -> Question:
    """Report the airings on the account's streams within whole days, at most 92. Each stream has its tracks, play counts and airings.

    An airing counts once, on the day it began, however often it was detected. One that is still on counts with its length so far. CSV and
    Parquet hold a row for every airing.
    """
    window = Window(values[FROM], values[UNTIL], values[TIMEZONE])
    form = choose_format(values[ACCEPT], list(FORMATS))
    if form is None:
        raise ApiError("not_acceptable", f"Accept is {values[ACCEPT][:60]!a}; the report comes as {', '.join(FORMATS)}.")

    async def work(service: Service, caller: Caller) -> Answer:
        return await start_report(service, caller.account_id, window, form)

    return FreeQuestion(work)


async def start_report(service: Service, account_id: int, window: Window, form: str) -> StreamedAnswer:
    """Start the report in the given format; errors of its beginning are raised."""
    name = f"airplay_{window.first}_{window.last}.{FORMATS[form]}"
    # Browsers save these formats instead of showing them.
    headers = {"content-disposition": f'attachment; filename="{name}"'} if form in {CSV, PARQUET} else {}
    # `vary`: a cache must not give the CSV to a caller who wants JSON.
    return await StreamedAnswer.start(_write_pieces(service, account_id, window, form), CONTENT_TYPES[form], headers | {"vary": "accept"})


def _write_pieces(service: Service, account_id: int, window: Window, form: str) -> Iterator[bytes | memoryview]:
    made_of = read_sheets(service, account_id, window)
    if form == CSV:
        return write_csv(made_of)
    return write_parquet(made_of) if form == PARQUET else write_json(window, made_of)
