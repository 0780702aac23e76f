"""Live streams: register, list, read, change, stop; what aired on them (specification 2.8, 4.14, contract G1 to G5). Free of credits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from account_store.api_keys import Caller
from account_store.errors import UnknownError
from account_store.ledger import Charge
from account_store.streams import history as stored
from account_store.streams.registry import (
    BALANCED,
    DEFAULT_LINGER,
    DETECTION_MODES,
    LONGEST_LINGER,
    LONGEST_NAME,
    LONGEST_URL,
    RUNNING,
    SHORTEST_LINGER,
    Settings,
    StoppedStreamError,
    StreamExistsError,
    TooManyStreamsError,
)
from account_store.streams.registry import Stream as StoredStream
from account_store.streams.segments import Segment, convert_time
from catalog_api.address_check import check_address
from catalog_api.airplay.track_names import describe_aired_tracks
from catalog_api.answers import Answer, encode_answer
from catalog_api.credit_prices import OF_STREAM, STREAM
from catalog_api.id_places import decode_place, encode_place
from catalog_api.metering import FreeQuestion, PrepaidQuestion, Question, format_timestamp
from catalog_api.parameters import CURSOR, HISTORY_INCLUDE, LIMIT, SEGMENTS, STREAM_ID, URL_PATTERN, VISIBLE, ParameterValues
from catalog_api.problems import ApiError
from catalog_api.request_bodies import Members
from catalog_api.route_declaration import delete_route, get_route, post_route, put_route
from catalog_api.service import Service
from catalog_api.wire.stream_types import AiredTrack, AiringEntry, AiringPage, AiringSegment, NowPlaying, Stream, StreamPage
from catalog_store.cursors import LARGEST_PLACE, CursorCodec, Place

_PROPERTIES: dict[str, dict[str, Any]] = {
    "url": {"type": "string", "format": "uri", "maxLength": LONGEST_URL, "pattern": URL_PATTERN},
    "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "pattern": rf"^[^\x00]*{VISIBLE}[^\x00]*$"},
    "detection_mode": {"type": ["string", "null"], "enum": [*DETECTION_MODES, None], "default": BALANCED},
    "linger_seconds": {
        "type": ["integer", "null"], "minimum": SHORTEST_LINGER, "maximum": LONGEST_LINGER, "default": DEFAULT_LINGER
    },
}  # fmt: skip
_BODY = {"type": "object", "required": ["url", "name"], "properties": _PROPERTIES}
_CHANGES = {
    "type": "object",
    "properties": {**_PROPERTIES, **{name: {**_PROPERTIES[name], "type": ["string", "null"]} for name in ("url", "name")}},
}
_CURSORS = CursorCodec()
_LAST_AIRING = LARGEST_PLACE._replace(score=datetime.max.replace(tzinfo=UTC).timestamp() // 1)
"""No airing began after the year 9999, where datetimes end."""


@post_route(
    "/v1/streams",
    Stream,
    tag="Streams",
    summary="Monitor a stream",
    failures=("idempotency_key_reused", "stream_exists", "stream_limit"),
    needs_card=True,
    price=OF_STREAM,
    is_free=True,
    is_about_catalog=False,
    body=_BODY,
    takes_idempotency_key=True,
)
def create_stream(_values: ParameterValues, members: Members) -> Question:
    """Monitor an Icecast, Shoutcast, HLS or plain HTTP audio stream from now on, until it is stopped.

    Addresses inside private networks are refused. A name that does not resolve at the moment is accepted, and `unresolved` says so. A few
    seconds later `runtime_status` and `last_error` say whether the stream can be heard. An address of an active stream of yours, in any
    spelling, is `stream_exists`, with its `stream_id`. A stream that is never heard is not billed.
    """
    url, name = members.read_address("url", LONGEST_URL), members.read_text("name", LONGEST_NAME)
    chosen = {member: value for member, value in _read_settings(members).items() if value is not None}
    members.check()

    async def work(service: Service, caller: Caller, _charge: Charge) -> Answer:
        unresolved = await check_address(service.outbound, url)
        create = partial(service.accounts.streams.create, most=service.settings.streams_per_account)
        try:
            made = await asyncio.to_thread(create, caller.account_id, url, name, Settings(**chosen))
        except StreamExistsError as error:
            raise _build_exists_error(error) from None
        except TooManyStreamsError as error:
            raise ApiError("stream_limit", f"{str(error).capitalize()}.") from None
        [stream] = await build_streams(service, [made])
        if unresolved is not None:
            stream.unresolved = unresolved
        return encode_answer(stream)

    # Prepaid although it is free: only this kind of question answers a repeat under an idempotency key.
    return PrepaidQuestion(STREAM, work, body=members.document)


@get_route(
    "/v1/streams",
    StreamPage,
    tag="Streams",
    summary="Your streams",
    parameters=(LIMIT, CURSOR),
    failures=("invalid_cursor",),
    is_free=True,
    is_about_catalog=False,
)
def streams(values: ParameterValues) -> Question:
    """Return the account's streams, newest first, stopped ones included."""

    async def work(service: Service, caller: Caller) -> Answer:
        query, cursor, limit = ("streams", str(caller.account_id)), values[CURSOR], values[LIMIT]
        after = None if cursor is None else decode_place(_CURSORS.decode(query, cursor))
        page = service.accounts.streams.read_page
        try:
            # One more than the page shows whether another one follows.
            found = await asyncio.to_thread(page, caller.account_id, limit=limit + 1, after=after)
        except UnknownError:
            # The default key of cursors is in the source, so a caller can seal a cursor of any place.
            raise ApiError("invalid_cursor", "The cursor names no stream of the account.") from None
        following = _CURSORS.encode(query, encode_place(found[limit - 1].stream_id)) if len(found) > limit else None
        return encode_answer(StreamPage(await build_streams(service, found[:limit]), following))

    return FreeQuestion(work)


@get_route(
    "/v1/streams/{id:str}",
    Stream,
    tag="Streams",
    summary="A stream by id",
    parameters=(STREAM_ID,),
    failures=("not_found",),
    is_free=True,
    is_about_catalog=False,
)
def stream(values: ParameterValues) -> Question:
    """Return the state of the monitoring, and what is on at this moment."""

    async def work(service: Service, caller: Caller) -> Answer:
        with _hide_unknown():
            found = await asyncio.to_thread(service.accounts.streams.get, caller.account_id, values[STREAM_ID])
        [one] = await build_streams(service, [found])
        return encode_answer(one)

    return FreeQuestion(work)


@put_route(
    "/v1/streams/{id:str}",
    Stream,
    tag="Streams",
    summary="Change a stream",
    parameters=(STREAM_ID,),
    failures=("not_found", "stream_exists", "stream_stopped"),
    needs_card=True,
    is_free=True,
    is_about_catalog=False,
    body=_CHANGES,
)
def change_stream(values: ParameterValues, members: Members) -> Question:
    """Change address, name or detection settings; absent and null members stay as they are.

    The id, the history and reports stay. The monitor moves to a new address within seconds. `detection_mode`: `strict` wants every match
    confirmed by the seconds after it, `balanced` those that leave a doubt, `sensitive` none (for jingles and short excerpts).
    `linger_seconds`: time that talk or other sound may cover a track until its airing ends.
    """
    url = None if members.read_value("url") is None else members.read_address("url", LONGEST_URL)
    name = None if members.read_value("name") is None else members.read_text("name", LONGEST_NAME)
    settings = _read_settings(members)
    members.check()

    async def work(service: Service, caller: Caller) -> Answer:
        unresolved = None if url is None else await check_address(service.outbound, url)
        change = partial(service.accounts.streams.change, caller.account_id, values[STREAM_ID], url=url, name=name, **settings)
        try:
            with _hide_unknown():
                changed = await asyncio.to_thread(change)
        except StreamExistsError as error:
            raise _build_exists_error(error) from None
        except StoppedStreamError as error:
            raise ApiError("stream_stopped", f"{str(error).capitalize()}.") from None
        [one] = await build_streams(service, [changed])
        if unresolved is not None:
            one.unresolved = unresolved
        return encode_answer(one)

    return FreeQuestion(work)


@delete_route(
    "/v1/streams/{id:str}",
    Stream,
    tag="Streams",
    summary="Stop a stream",
    parameters=(STREAM_ID,),
    failures=("not_found",),
    is_free=True,
    is_about_catalog=False,
)
def stop_stream(values: ParameterValues) -> Question:
    """Stop monitoring it for good. Its airings stay in its history and in reports. Stopping it again changes nothing."""

    async def work(service: Service, caller: Caller) -> Answer:
        with _hide_unknown():
            stopped = await asyncio.to_thread(service.accounts.streams.stop, caller.account_id, values[STREAM_ID])
        [one] = await build_streams(service, [stopped])
        return encode_answer(one)

    return FreeQuestion(work)


@get_route(
    "/v1/streams/{id:str}/history",
    AiringPage,
    tag="Streams",
    summary="Airings of a stream",
    parameters=(STREAM_ID, LIMIT, CURSOR, HISTORY_INCLUDE),
    failures=("not_found", "invalid_cursor"),
    is_free=True,
    is_about_catalog=False,
)
def stream_history(values: ParameterValues) -> Question:
    """Return the airings of the stream, newest first, also one that is still on. Each is one entry, however often it was detected.

    With `include=segments`, `segments` lists the time without a known track from the oldest airing of the page (the beginning, on the last
    page) to the page before: `talk`, `music_unknown` (also talk over music) and `silence`, to within some seconds; at most 2,000.
    """

    async def work(service: Service, caller: Caller) -> Answer:
        stream_id, cursor, limit = values[STREAM_ID], values[CURSOR], values[LIMIT]
        query = ("airings", stream_id)
        with _hide_unknown():
            # The history does not ask whose stream it is.
            await asyncio.to_thread(service.accounts.streams.get, caller.account_id, stream_id)
        behind = None if cursor is None else _read_history_place(_CURSORS.decode(query, cursor, _LAST_AIRING))
        found = await asyncio.to_thread(service.accounts.history.read_page, stream_id, limit=limit + 1, behind=behind)
        last = found[limit - 1] if len(found) > limit else None
        following = None if last is None else _CURSORS.encode(query, Place(last.started_at.timestamp(), 0, last.airing_id))
        tracks = _describe_tracks(service, found[:limit])
        page = AiringPage([_build_entry(one, tracks[one.airing_id]) for one in found[:limit]], following)
        if SEGMENTS in values[HISTORY_INCLUDE]:
            # The pages together cover all time once: each begins at its oldest airing and ends where the page before began.
            since, until = None if last is None else last.started_at, None if behind is None else behind.started_at
            spans = await asyncio.to_thread(service.accounts.segments.list_segments, stream_id, since, until)
            page.segments = [_build_segment(one) for one in reversed(spans)]
        return encode_answer(page)

    return FreeQuestion(work)


async def build_streams(service: Service, found: Sequence[StoredStream]) -> list[Stream]:
    """Return streams as the interface shows them, with what is on."""
    on_air = await asyncio.to_thread(service.accounts.history.find_on_air, [one.stream_id for one in found])
    # The names of all streams are read in one call.
    tracks = _describe_tracks(service, list(on_air.values()))
    playing = {airing.stream_id: NowPlaying(tracks[airing.airing_id], format_timestamp(airing.started_at)) for airing in on_air.values()}
    return [_build_stream(one, playing.get(one.stream_id)) for one in found]


def _describe_tracks(service: Service, airings: Sequence[stored.Airing]) -> dict[int, AiredTrack]:
    if not airings:
        return {}
    with service.live.hold() as catalog:
        return describe_aired_tracks(catalog, airings)


def _build_stream(one: StoredStream, playing: NowPlaying | None) -> Stream:
    state = "unrecognized" if one.runtime_status == RUNNING else "not_listening"
    return Stream(
        id=one.stream_id,
        url=one.url,
        name=one.name,
        status=one.status,
        runtime_status=one.runtime_status,
        detection_mode=one.detection_mode,
        linger_seconds=one.linger_seconds,
        created_at=format_timestamp(one.created_at),
        stopped_at=_format_optional(one.stopped_at),
        now_playing=playing,
        now_playing_state=state if playing is None else "playing",
        last_recognized_at=_format_optional(one.last_recognized_at),
        last_error=one.last_error,
        last_error_at=_format_optional(one.last_error_at),
        audio_format=one.audio_format,
    )


def _build_entry(one: stored.Airing, track: AiredTrack) -> AiringEntry:
    return AiringEntry(track, format_timestamp(one.started_at), _format_optional(one.ended_at), one.duration_seconds, one.confidence)


def _build_segment(one: Segment) -> AiringSegment:
    started_at, ended_at = convert_time(one.started_ms), convert_time(one.ended_ms)
    seconds = round((ended_at - started_at).total_seconds())
    return AiringSegment(one.kind, format_timestamp(started_at), format_timestamp(ended_at), seconds)


def _read_settings(members: Members) -> dict[str, Any]:
    """Read the settings of detection; None for those that are absent or null."""
    mode = None if members.read_value("detection_mode") is None else members.read_choice("detection_mode", DETECTION_MODES)
    seconds = members.read_optional_integer("linger_seconds", SHORTEST_LINGER, LONGEST_LINGER)
    return {"detection_mode": mode, "linger_seconds": seconds}


def _build_exists_error(error: StreamExistsError) -> ApiError:
    return ApiError("stream_exists", f"{str(error).capitalize()}.", members={"stream_id": error.stream_id})


def _format_optional(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)


def _read_history_place(place: Place) -> stored.Place:
    return stored.Place(datetime.fromtimestamp(place.score, UTC), place.id)


@contextmanager
def _hide_unknown() -> Iterator[None]:
    """Answer 404 for a stream of another account, as for one that does not exist."""
    try:
        yield
    except UnknownError:
        raise ApiError("not_found", "The account has no such stream.") from None
