"""A report as JSON: `AirplayReport` of catalog_api/wire/report.py, in pieces, three a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from catalog_api.airplay.columns import rows
from catalog_api.metering import timestamp
from catalog_api.wire.report import ReportGap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from account_store.streams.history import Gap
    from catalog_api.airplay.sheets import Sheet, Window

_encode = msgspec.json.encode


def as_json(window: Window, sheets: Iterable[Sheet]) -> Iterator[bytes | memoryview]:
    """The document."""
    head = {"from": window.first, "until": window.last, "timezone": window.zone.key, "scope": "account"}
    yield b'{"report":%s,"streams":[' % _encode(head)[:-1]
    heads: dict[int, tuple[bytes, bytes]] = {}
    for number, sheet in enumerate(sheets):
        yield b"," * bool(number) + _begun(sheet, heads)
        if len(sheet.track_of):
            yield rows(sheet, [heads[track.track_id][1] for track in sheet.tracks], _end_of_row, without_last=1)
        yield b'],"gaps":%s}' % _encode([_gap(gap) for gap in sheet.gaps])
    yield b"]}}"


def _begun(sheet: Sheet, heads: dict[int, tuple[bytes, bytes]]) -> bytes:
    """A stream up to its airings.

    `heads`: how the rows of a track begin, in the summary and in the detail; kept over the streams, which play the same tracks.
    """
    for track in sheet.tracks:
        if track.track_id not in heads:
            codes = b'{"track_id":%d,"isrc":%s' % (track.track_id, _encode(track.isrc))
            names = b',"title":%s,"artist":%s,"play_count":' % (_encode(track.title), _encode(track.artist))
            heads[track.track_id] = codes + names, codes + b',"played_at":"'
    counted = zip(sheet.tracks, sheet.play_counts.tolist(), strict=True)
    summary = b",".join([b"%s%d}" % (heads[track.track_id][0], count) for track, count in counted])
    named = _encode({"id": sheet.stream.stream_id, "name": sheet.stream.name})[:-1]
    return b'%s,"summary":[%s],"detail":[' % (named, summary)


def _end_of_row(seconds: int) -> bytes:
    return b'","duration_seconds":%d},' % seconds


def _gap(gap: Gap) -> ReportGap:
    return ReportGap(timestamp(gap.started_at), None if gap.ended_at is None else timestamp(gap.ended_at), gap.cause, gap.detail)
