"""The airplay report, in the form of its JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Date, Id, Isrc, Timestamp


class ReportSummaryRow(msgspec.Struct):
    """A track and how often it was played."""

    track_id: Id
    isrc: Isrc | None
    title: str
    artist: str
    play_count: Annotated[int, Meta(ge=1)]


class ReportDetailRow(msgspec.Struct):
    """One airing."""

    track_id: Id
    isrc: Isrc | None
    played_at: Timestamp
    duration_seconds: Annotated[int, Meta(ge=0)]


class ReportGap(msgspec.Struct):
    """Time of the report that nobody listened to: the stream was away (`source`), or we were (`monitor`). Open while `ended_at` is null."""

    started_at: Timestamp
    ended_at: Timestamp | None
    cause: str
    detail: str | None


class ReportedStream(msgspec.Struct):
    """A stream's part of a report: tracks, most played first; airings, oldest first."""

    id: str
    name: str
    summary: list[ReportSummaryRow]
    detail: list[ReportDetailRow]
    gaps: list[ReportGap]


class Report(msgspec.Struct):
    """Airings that began within whole days of `timezone`, the last one included, on the account's streams, oldest stream first."""

    since: Date = msgspec.field(name="from")
    until: Date
    timezone: str
    scope: Annotated[str, Meta(extra_json_schema={"enum": ["account"]})]
    streams: list[ReportedStream]


class AirplayReport(msgspec.Struct):
    """The airplay report of an account."""

    report: Report
