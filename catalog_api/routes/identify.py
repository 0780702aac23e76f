"""Identify: the recordings in a fingerprint or in an audio file (specification 4.8, contract E).

Content-Type selects the mode. Credits are reserved before any matching and charged only with a 200.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import numpy as np
import structlog
from litestar.types import Receive, Scope

from audio_recognition.chromaprint.compressed import ALGORITHM_2, decode
from catalog_api.answers import Answer, encode_answer
from catalog_api.credit_prices import IDENTIFICATION, OF_IDENTIFICATION, price_timeline, price_upload
from catalog_api.metering import BUILD_HEADER, PreparedWork, Question, ReservedQuestion
from catalog_api.parameters import IDENTIFY_MODE, ParameterValues, raise_problems
from catalog_api.problems import ParameterProblem, read_request_id
from catalog_api.recognition import RecognitionOutcome
from catalog_api.request_bodies import Members, read_json, read_media_type
from catalog_api.route_declaration import has_strict_preference, post_route_with_raw_body
from catalog_api.service import Service
from catalog_api.uploads import UPLOAD_TYPE, IncomingUpload, begin_upload
from catalog_api.wire.matching_types import Identified

if TYPE_CHECKING:
    from numpy.typing import NDArray

log = structlog.get_logger("catalog_api")

TIMELINE = "timeline"
MOST_FINGERPRINT_ITEMS = 10_000
"""Twenty minutes; fpcalc makes 948 items of two minutes."""
LONGEST_COMPRESSED = 166_000
"""Characters. The maximum of items fits, even if every bit of each differs from the one before."""
LONGEST_SECONDS = 24 * 60 * 60
_LOWEST, _HIGHEST = -(2**31), 2**32 - 1
_ITEM = {"type": "integer", "minimum": _LOWEST, "maximum": _HIGHEST}
_BODY = {
    "type": "object",
    "required": ["fingerprint"],
    "properties": {
        "fingerprint": {
            "description": "Chromaprint, algorithm 2: the items, signed or unsigned, or the compressed text that fpcalc prints.",
            "oneOf": [
                {"type": "array", "minItems": 1, "maxItems": MOST_FINGERPRINT_ITEMS, "items": _ITEM},
                {"type": "string", "minLength": 6, "maxLength": LONGEST_COMPRESSED, "pattern": "^[A-Za-z0-9_-]+$"},
            ],
        },
        "fingerprint_duration": {
            "description": "Seconds that the whole file lasts of which this is the beginning.",
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": LONGEST_SECONDS,
        },
    },
}


@post_route_with_raw_body(
    "/v1/tracks/identify",
    Identified,
    tag="Tracks",
    summary="Identify a recording",
    failures=("unsupported_audio", "undecodable_audio", "recognition_unavailable", "idempotency_key_reused"),
    feature="identify",
    price=OF_IDENTIFICATION,
    is_about_catalog=False,
    names_build=True,
    body=_BODY,
    other_bodies=(UPLOAD_TYPE,),
    parameters=(IDENTIFY_MODE,),
    takes_idempotency_key=True,
)
async def identify(values: ParameterValues, problems: list[ParameterProblem], scope: Scope, receive: Receive) -> Question:
    """Name the recording of a fingerprint (JSON, 10 credits) or of an audio file of up to 100 MB (octet-stream, 10 credits and one a MB).

    Charged with a 200, matched or not. `results` are best first, none below a confidence of 0.5; `reason` says why there is none. When the
    beginning of a file is not recognised, deeper windows of 30 seconds are tried.

    With `mode=timeline` all sound of a file is searched, up to four hours, and `timeline` lists every track with its bounds, and the gaps
    (10 credits and five a MB).
    """
    is_timeline = values[IDENTIFY_MODE] == TIMELINE
    if read_media_type(scope) == UPLOAD_TYPE:
        # Before any of the upload is read.
        raise_problems(problems)
        return _ask_about_upload(await begin_upload(scope, receive), read_request_id(scope), is_timeline=is_timeline)
    if is_timeline:
        problems.append(ParameterProblem("query", IDENTIFY_MODE.name, f"timeline needs the bytes of a file ({UPLOAD_TYPE})"))
    members = Members(await read_json(scope, receive), problems, is_strict=has_strict_preference(scope))
    return _ask_about_fingerprint(members, read_request_id(scope))


def _ask_about_fingerprint(members: Members, request: str) -> Question:
    items, seconds = _read_fingerprint(members)

    @asynccontextmanager
    async def prepare_work(service: Service, *, is_repeatable: bool) -> AsyncIterator[PreparedWork]:  # noqa: ARG001 - the body is here already
        async def work() -> Answer:
            outcome = await service.recognition.recognise_fingerprint(items, seconds)
            _log(service, outcome, request_id=request, mode="fingerprint", items=len(items))
            return _build_answer(service, outcome, IDENTIFICATION)

        yield PreparedWork(IDENTIFICATION, members.document, work)

    return ReservedQuestion(prepare_work, least=IDENTIFICATION, price=IDENTIFICATION)


def _ask_about_upload(arriving: IncomingUpload, request: str, *, is_timeline: bool) -> Question:
    compute_price = price_timeline if is_timeline else price_upload

    @asynccontextmanager
    async def prepare_work(service: Service, *, is_repeatable: bool) -> AsyncIterator[PreparedWork]:
        # Only a key needs the digest of up to 100 MB.
        async with service.recognition.spool.store(arriving, with_digest=is_repeatable) as received:
            # By the received size: the announced one may be missing or wrong.
            price = compute_price(received.size)

            async def work() -> Answer:
                recognise = service.recognition.list_tracks if is_timeline else service.recognition.recognise_file
                outcome = await recognise(received.file)
                mode = TIMELINE if is_timeline else "upload"
                _log(service, outcome, request_id=request, mode=mode, bytes=received.size, windows=outcome.windows)
                return _build_answer(service, outcome, price)

            # The mode is a part of the request: one key must not replay the answer of the other.
            yield PreparedWork(price, [TIMELINE, received.digest] if is_timeline else received.digest, work)

    announced = None if arriving.length is None else compute_price(arriving.length)
    return ReservedQuestion(prepare_work, least=compute_price(1), price=announced)


def _log(service: Service, outcome: RecognitionOutcome, **facts: object) -> None:
    if service.settings.log_requests:
        best = outcome.results[0].confidence if outcome.results else None
        log.info("identified", confidence=best, reason=outcome.reason, **facts)


def _build_answer(service: Service, outcome: RecognitionOutcome, price: int) -> Answer:
    answer = Identified(matched=bool(outcome.results), results=outcome.results, credits_charged=price)
    if outcome.reason is not None:
        answer.reason = outcome.reason.value
    if outcome.window_start_seconds is not None:
        answer.window_offset_seconds = round(outcome.window_start_seconds, 2)
    if outcome.timeline is not None:
        answer.timeline = outcome.timeline
    encoded, named = encode_answer(answer), service.live.snapshot
    if named is not None:
        encoded.headers[BUILD_HEADER] = named[0]
    return encoded


def _read_fingerprint(members: Members) -> tuple[NDArray[np.uint32], int | None]:
    sent = members.read_value("fingerprint")
    items = _decompress(members, sent) if isinstance(sent, str) else _read_items(members)
    seconds = members.read_optional_integer("fingerprint_duration", 1, LONGEST_SECONDS)
    members.check()
    return items, seconds


def _read_items(members: Members) -> NDArray[np.uint32]:
    items = members.read_integers("fingerprint", _LOWEST, _HIGHEST, MOST_FINGERPRINT_ITEMS)
    # By way of 64 bits: signed items wrap to the unsigned ones that the index holds.
    return np.array(items, np.int64).astype(np.uint32)


def _decompress(members: Members, text: str) -> NDArray[np.uint32]:
    problem, items = "", np.zeros(0, np.uint32)
    try:
        algorithm, items = decode(text[: LONGEST_COMPRESSED + 1], most_items=MOST_FINGERPRINT_ITEMS)
    except ValueError as error:
        problem = str(error)
    else:
        if algorithm != ALGORITHM_2:
            problem = f"is of algorithm {algorithm + 1}: send one of algorithm 2"
        elif not len(items):
            problem = "must hold at least one item"
    if problem:
        members.add_problem("fingerprint", problem)
    return items
