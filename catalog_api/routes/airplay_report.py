"""The airplay report (specification 2.9, 4.14, contract G7). Free; limits of the window are those of the specification, part 8."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from account_store.api_keys import Caller
from catalog_api.airplay.report_formats import CSV, FORMS, PARQUET, SENT_AS, as_csv, as_json, as_parquet, chosen
from catalog_api.airplay.stream_sheets import MOST_DAYS, Window, sheets
from catalog_api.airplay.streamed_answer import StreamedAnswer
from catalog_api.answers import Answer
from catalog_api.metering import Free, Question
from catalog_api.parameters import ACCEPT, FROM, TIMEZONE, UNTIL, ParameterValues
from catalog_api.problems import ApiError, ParameterProblem
from catalog_api.route_declaration import reads
from catalog_api.service import Service
from catalog_api.wire.stream_types import AirplayReport


def window_problems(asked: ParameterValues) -> list[ParameterProblem]:
    """Find what is wrong with the two days together. A day that is wrong by itself is told elsewhere."""
    first: date | None = asked[FROM]
    last: date | None = asked[UNTIL]
    if first is None or last is None:
        return []
    days = Window(first, last, asked[TIMEZONE]).days
    if days < 1:
        return [ParameterProblem("query", "from", f"must not be after until, {last}")]
    if days > MOST_DAYS:
        return [ParameterProblem("query", name, f"at most {MOST_DAYS} days, got {days}") for name in ("from", "until")]
    return []


@reads(
    "/v1/streams/report",
    AirplayReport,
    tag="Streams",
    summary="Airplay report",
    parameters=(FROM, UNTIL, TIMEZONE, ACCEPT),
    is_free=True,
    is_about_catalog=False,
    other_types=(CSV, PARQUET),
    checks=(window_problems,),
)
def report(asked: ParameterValues) -> Question:
    """What aired on the account's streams within whole days, at most 92: per stream its tracks with their plays, and every airing.

    An airing counts where it began, once, however often it was detected; one that goes on counts with its length so far. CSV and Parquet
    hold a row for every airing.
    """
    window = Window(asked[FROM], asked[UNTIL], asked[TIMEZONE])
    form = chosen(asked[ACCEPT], list(FORMS))
    if form is None:
        raise ApiError("not_acceptable", f"Accept is {asked[ACCEPT][:60]!a}; there are {', '.join(FORMS)}.")

    async def work(service: Service, caller: Caller) -> Answer:
        return await made(service, caller.account_id, window, form)

    return Free(work)


async def made(service: Service, account_id: int, window: Window, form: str) -> StreamedAnswer:
    """The report as `form`, begun; whatever keeps it from being begun is raised."""
    name = f"airplay_{window.first}_{window.last}.{FORMS[form]}"
    headers = {"content-disposition": f'attachment; filename="{name}"'} if form in {CSV, PARQUET} else {}
    return await StreamedAnswer.start(_pieces(service, account_id, window, form), SENT_AS[form], headers | {"vary": "accept"})


def _pieces(service: Service, account_id: int, window: Window, form: str) -> Iterator[bytes | memoryview]:
    made_of = sheets(service, account_id, window)
    if form == CSV:
        return as_csv(made_of)
    return as_parquet(made_of) if form == PARQUET else as_json(window, made_of)
