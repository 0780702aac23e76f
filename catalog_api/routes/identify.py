"""Identify: the recordings in a fingerprint or in an audio file (specification 4.8, contract E).

The mode follows from Content-Type. Credits are set aside before anything is matched and taken only with a 200.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import numpy as np
import structlog
from litestar.types import Receive, Scope

from audio_recognition.chromaprint.compressed import ALGORITHM_2, decode
from catalog_api.answers import Answer, encoded
from catalog_api.metering import Question, Ready, Reserved
from catalog_api.parameters import check
from catalog_api.problems import ParameterProblem, request_id
from catalog_api.recognition import RecognitionOutcome
from catalog_api.request_bodies import Members, media_type, read_json
from catalog_api.route_declaration import prefers_strict, receives
from catalog_api.service import Service
from catalog_api.uploads import MEGABYTE, UPLOAD_TYPE, Arriving, begin
from catalog_api.wire.matching_types import Identified

if TYPE_CHECKING:
    from numpy.typing import NDArray

log = structlog.get_logger("catalog_api")

PRICE = 10
"""Credits, flat (specification, part 8); an upload costs one more for each megabyte that was begun."""
MOST_FINGERPRINT_ITEMS = 10_000
"""Twenty minutes; fpcalc makes 948 of two."""
LONGEST_COMPRESSED = 166_000
"""Characters: so many items fit in, even if every bit of each had changed."""
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


@receives(
    "/v1/tracks/identify",
    Identified,
    tag="Tracks",
    summary="Identify a recording",
    failures=("unsupported_audio", "undecodable_audio", "recognition_unavailable", "idempotency_key_reused"),
    feature="identify",
    is_about_catalog=False,
    body=_BODY,
    other_bodies=(UPLOAD_TYPE,),
    takes_idempotency_key=True,
)
async def identify(problems: list[ParameterProblem], scope: Scope, receive: Receive) -> Question:
    """Names the recording of a fingerprint (JSON, 10 credits) or of an audio file of up to 100 MB (octet-stream, 10 credits and one a MB).

    Charged with a 200, matched or not. `results` are best first, none below a confidence of 0.5; `reason` tells why there is none. When
    the beginning of a file is not recognised, deeper windows of 30 seconds are.
    """
    if media_type(scope) == UPLOAD_TYPE:
        check(problems)
        return _of_upload(await begin(scope, receive), request_id(scope))
    members = Members(await read_json(scope, receive), problems, is_strict=prefers_strict(scope))
    return _of_fingerprint(members, request_id(scope))


def _of_fingerprint(members: Members, request: str) -> Question:
    items, seconds = _read(members)

    @asynccontextmanager
    async def ready(service: Service, *, is_repeatable: bool) -> AsyncIterator[Ready]:  # noqa: ARG001 - the body is here already
        async def work() -> Answer:
            heard = await service.recognition.of_fingerprint(items, seconds)
            _log(service, heard, request_id=request, mode="fingerprint", items=len(items))
            return _told(heard, PRICE)

        yield Ready(PRICE, members.document, work)

    return Reserved(ready, least=PRICE, price=PRICE)


def _of_upload(arriving: Arriving, request: str) -> Question:
    @asynccontextmanager
    async def ready(service: Service, *, is_repeatable: bool) -> AsyncIterator[Ready]:
        async with service.recognition.spool.received(arriving, with_digest=is_repeatable) as received:
            price = price_of(received.size)

            async def work() -> Answer:
                heard = await service.recognition.of_file(received.file)
                _log(service, heard, request_id=request, mode="upload", bytes=received.size, windows=heard.windows)
                return _told(heard, price)

            yield Ready(price, received.digest, work)

    announced = None if arriving.length is None else price_of(arriving.length)
    return Reserved(ready, least=price_of(1), price=announced)


def price_of(size: int) -> int:
    """Credits of an upload of so many bytes."""
    return PRICE + -(-size // MEGABYTE)


def _log(service: Service, heard: RecognitionOutcome, **facts: object) -> None:
    if service.settings.log_requests:
        best = heard.results[0].confidence if heard.results else None
        log.info("identified", confidence=best, reason=heard.reason, **facts)


def _told(heard: RecognitionOutcome, price: int) -> Answer:
    answer = Identified(matched=bool(heard.results), results=heard.results, credits_charged=price)
    if heard.reason is not None:
        answer.reason = heard.reason.value
    if heard.window_start_seconds is not None:
        answer.window_offset_seconds = round(heard.window_start_seconds, 2)
    return encoded(answer)


def _read(members: Members) -> tuple[NDArray[np.uint32], int | None]:
    sent = members.value("fingerprint")
    items = _uncompressed(members, sent) if isinstance(sent, str) else _items(members)
    seconds = members.optional_integer("fingerprint_duration", 1, LONGEST_SECONDS)
    members.check()
    return items, seconds


def _items(members: Members) -> NDArray[np.uint32]:
    items = members.integers("fingerprint", _LOWEST, _HIGHEST, MOST_FINGERPRINT_ITEMS)
    return np.array(items, np.int64).astype(np.uint32)


def _uncompressed(members: Members, text: str) -> NDArray[np.uint32]:
    wrong, items = "", np.zeros(0, np.uint32)
    try:
        algorithm, items = decode(text[: LONGEST_COMPRESSED + 1], most_items=MOST_FINGERPRINT_ITEMS)
    except ValueError as error:
        wrong = str(error)
    else:
        if algorithm != ALGORITHM_2:
            wrong = f"made by algorithm {algorithm + 1}: recordings are compared by algorithm 2"
        elif not len(items):
            wrong = "a fingerprint of no items"
    if wrong:
        members.complain("fingerprint", wrong)
    return items
