"""A report as JSON: `AirplayReport` of catalog_api/wire/report.py, in pieces, some for each stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from catalog_api.airplay.columns import joined, rows
from catalog_api.metering import timestamp
from catalog_api.wire.report import ReportGap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from account_store.streams.history import Gap
    from catalog_api.airplay.sheets import Sheet, Window
    from catalog_api.airplay.tracks import Named

_encode = msgspec.json.encode


def as_json(window: Window, sheets: Iterable[Sheet]) -> Iterator[bytes | memoryview]:
    """The document."""
    head = {"from": window.first, "until": window.last, "timezone": window.zone.key, "scope": "account"}
    yield b'{"report":%s,"streams":[' % _encode(head)[:-1]
    for number, sheet in enumerate(sheets):
        named = _encode({"id": sheet.stream.stream_id, "name": sheet.stream.name})[:-1]
        yield b'%s%s,"summary":[%s],"detail":[' % (b"," * bool(number), named, bytes(_summary(sheet)))
        yield rows(sheet, sheet.tracks.column(sheet.numbers, _of_airing, pa.binary()), _end_of_row, without_last=1)
        yield b'],"gaps":%s}' % _encode([_gap(gap) for gap in sheet.gaps])
    yield b"]}}"


def _summary(sheet: Sheet) -> memoryview:
    counts = pa.array(sheet.play_counts).cast(pa.string()).cast(pa.binary())
    return joined(sheet.tracks.column(sheet.numbers, _of_summary, pa.binary()), counts, b"},", without_last=1)


def _of_summary(track: Named) -> bytes:
    """How a row of the summary begins."""
    return b'%s,"title":%s,"artist":%s,"play_count":' % (_codes(track), _encode(track.title), _encode(track.artist))


def _of_airing(track: Named) -> bytes:
    """How a row of the detail begins."""
    return b'%s,"played_at":"' % _codes(track)


def _codes(track: Named) -> bytes:
    return b'{"track_id":%d,"isrc":%s' % (track.track_id, _encode(track.isrc))


def _end_of_row(seconds: int) -> bytes:
    return b'","duration_seconds":%d},' % seconds


def _gap(gap: Gap) -> ReportGap:
    return ReportGap(timestamp(gap.started_at), None if gap.ended_at is None else timestamp(gap.ended_at), gap.cause, gap.detail)
