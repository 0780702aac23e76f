"""Bulk jobs: create, read, cancel, fetch the result. The work is done by other processes (catalog_api/jobs)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

from litestar.types import Receive, Scope

from account_store.api_keys import Caller
from account_store.clock import format_rfc3339
from account_store.errors import UnknownError
from account_store.jobs.job_store import SUCCEEDED, NewJob, TooManyJobsError
from account_store.jobs.job_store import Job as StoredJob
from account_store.ledger import Charge
from account_store.opaque_ids import generate_opaque_id
from catalog_api.address_check import check_address
from catalog_api.airplay.streamed_answer import StreamedAnswer
from catalog_api.answers import NO_STORE, Answer, encode_answer
from catalog_api.credit_prices import JOB, OF_JOB, RESOLVED_ROW
from catalog_api.id_places import decode_place, encode_place
from catalog_api.jobs.job_folder import JobFolder
from catalog_api.jobs.job_input import CSV, JOB_FORMATS, NDJSON, PARQUET
from catalog_api.jobs.job_worker import LARGEST_INPUT
from catalog_api.metering import FreeQuestion, PrepaidQuestion, Question, check_credits
from catalog_api.parameters import (
    CURSOR,
    JOB_ID,
    JOBS_LIMIT,
    URL_CHARACTERS,
    URL_PATTERN,
    ParameterValues,
    build_choice_parameter,
    raise_problems,
)
from catalog_api.problems import RETRY_SOON, ApiError, ParameterProblem
from catalog_api.request_bodies import Members, read_json, read_media_type
from catalog_api.route_declaration import delete_route, get_route, has_strict_preference, post_route_with_raw_body
from catalog_api.row_resolvers import ROW_KINDS
from catalog_api.service import Service
from catalog_api.uploads import write_parts
from catalog_api.wire.job_types import Job, JobPage
from catalog_store.cursors import CursorCodec

MEDIA_TYPES = {CSV: "text/csv", NDJSON: "application/x-ndjson", PARQUET: "application/vnd.apache.parquet"}
_FORMATS = {media_type: form for form, media_type in MEDIA_TYPES.items()}
_INPUT_TYPES = tuple(dict.fromkeys(name for kind in ROW_KINDS.values() for name in kind.forms))
KIND = build_choice_parameter("kind", tuple(ROW_KINDS), "What the rows lead to.", default="tracks")
INPUT_TYPE = build_choice_parameter("input_type", _INPUT_TYPES, "What the rows are, as in bulk resolve of that kind.", is_required=True)
FORMAT = build_choice_parameter("format", JOB_FORMATS, "Format at the `url`; that of an upload is its Content-Type.")
RESULT_FORMAT = build_choice_parameter("result_format", JOB_FORMATS, "Format of the result; by default that of the input.")
_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["url"],
    "properties": {"url": {"type": "string", "format": "uri", "maxLength": URL_CHARACTERS, "pattern": URL_PATTERN}},
}
_COMMON: dict[str, Any] = {"tag": "Jobs", "is_free": True, "is_about_catalog": False, "is_live_only": True}
_CURSORS = CursorCodec()
_CLOSE = {"connection": "close"}
_UPLOAD_SECONDS = 600.0
_PIECE_BYTES = 256 * 1024
_MEGABYTE = 10**6


def find_input_type_problems(values: ParameterValues) -> list[ParameterProblem]:
    """Find an input type that the kind does not have. Other code reports an invalid one."""
    forms, input_type = ROW_KINDS[values[KIND]].forms, values[INPUT_TYPE]
    if input_type is None or input_type in forms:
        return []
    return [ParameterProblem("query", INPUT_TYPE.name, f"must be one of {', '.join(forms)} where kind is {values[KIND]}")]


@post_route_with_raw_body(
    "/v1/jobs/resolve",
    Job,
    tag="Jobs",
    summary="Resolve up to a million rows",
    is_live_only=True,
    failures=("idempotency_key_reused", "job_limit", "jobs_unavailable"),
    price=OF_JOB,
    is_about_catalog=False,
    body=_BODY,
    other_bodies=tuple(MEDIA_TYPES.values()),
    parameters=(KIND, INPUT_TYPE, FORMAT, RESULT_FORMAT),
    checks=(find_input_type_problems,),
    takes_idempotency_key=True,
)
async def create_job(values: ParameterValues, problems: list[ParameterProblem], scope: Scope, receive: Receive) -> Question:
    """Queue the rows of an upload of up to 256 MiB (CSV, NDJSON or Parquet), or of a file at a public address (JSON with `url`).

    Rows and results are those of bulk resolve, for a credit each. They are reserved when the rows are counted, at most what is left of the
    month: rows above are `skipped_no_credits`. They are charged when the job succeeds; one that fails or is cancelled costs nothing.
    CSV and Parquet need the columns `artist` and `title`, or one that is named like the input type. The event `job.finished` tells the end.
    """
    media_type = read_media_type(scope)
    if media_type in _FORMATS:
        # Before any of the upload is read.
        raise_problems(problems)
        return _UploadedJob(_build_new(values, _FORMATS[media_type], None), scope, receive)
    if values[FORMAT] is None:
        problems.append(ParameterProblem("query", FORMAT.name, "is required with a url"))
    members = Members(await read_json(scope, receive), problems, is_strict=has_strict_preference(scope))
    url = members.read_address("url", URL_CHARACTERS)
    members.check()

    async def work(service: Service, caller: Caller, _charge: Charge) -> Answer:
        await check_address(service.outbound, url)
        return await _create(service, caller, _build_new(values, values[FORMAT], url), generate_opaque_id())

    return _AffordableJob(JOB, work, body=[_identify(values), members.document])


class _AffordableJob(PrepaidQuestion):
    """A job of an account that has credits left. Nothing is charged before its rows are counted."""

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Refuse an account without credits, then create the job."""
        await check_credits(service, caller, RESOLVED_ROW)
        return await super().answer(service, caller, scope)


class _UploadedJob(_AffordableJob):
    """A job whose input is the body of the request."""

    __slots__ = ("_job_id", "_new", "_receive", "_scope")

    def __init__(self, new: NewJob, scope: Scope, receive: Receive) -> None:
        super().__init__(JOB, self._create_stored)
        self._new, self._scope, self._receive = new, scope, receive
        self._job_id = generate_opaque_id()

    async def answer(self, service: Service, caller: Caller, scope: Scope) -> Answer:
        """Store the upload, then create the job. The upload of a repeat under an idempotency key is removed again."""
        await check_credits(service, caller, RESOLVED_ROW)
        folder = JobFolder(service.settings.jobs_folder, self._job_id)
        is_created = False
        try:
            digest = await _store_input(folder, self._scope, self._receive, service.settings.jobs_free_mb * _MEGABYTE)
            self._body = [*astuple(self._new), digest]
            answer = await super().answer(service, caller, scope)
            is_created = "idempotency-replayed" not in answer.headers
        finally:
            if not is_created:
                await asyncio.to_thread(folder.remove)
        return answer

    async def _create_stored(self, service: Service, caller: Caller, _charge: Charge) -> Answer:
        return await _create(service, caller, self._new, self._job_id)


async def _store_input(folder: JobFolder, scope: Scope, receive: Receive, free_bytes: int) -> str:
    """Store the body as the input of the job, if `free_bytes` stay free on the disk; return its digest.

    ApiError `body_too_large`, `request_timeout`, `jobs_unavailable`.
    """
    headers = dict(scope["headers"])
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise ApiError("unsupported_media_type", "The body has a Content-Encoding: send it uncompressed.", headers=_CLOSE)
    announced = headers.get(b"content-length", b"0")
    _check_size(int(announced) if announced.isdigit() else 0)
    try:
        folder.make()
        with folder.open_upload(free_bytes) as file:
            async with asyncio.timeout(_UPLOAD_SECONDS):
                _, digest = await write_parts(receive, file, hashlib.sha256(), check_size=_check_size)
            # Not on the event loop: the disk may take seconds.
            await asyncio.to_thread(folder.finish_part, file, folder.input.name)
    except TimeoutError:
        raise ApiError("request_timeout", f"The input did not arrive within {_UPLOAD_SECONDS:.0f} seconds.", headers=_CLOSE) from None
    except OSError as error:
        raise ApiError("jobs_unavailable", f"The input cannot be stored: {error.strerror}.", headers={**RETRY_SOON, **_CLOSE}) from error
    return digest


def _check_size(size: int) -> None:
    if size > LARGEST_INPUT:
        raise ApiError("body_too_large", f"The input is larger than {LARGEST_INPUT} bytes: split it.", headers=_CLOSE)


def _build_new(values: ParameterValues, form: str, url: str | None) -> NewJob:
    return NewJob(values[KIND], values[INPUT_TYPE], form, values[RESULT_FORMAT] or form, url)


def _identify(values: ParameterValues) -> list[object]:
    return [values[one] for one in (KIND, INPUT_TYPE, FORMAT, RESULT_FORMAT)]


async def _create(service: Service, caller: Caller, new: NewJob, job_id: str) -> Answer:
    create = partial(service.accounts.jobs.create, job_id=job_id, most=caller.plan.active_jobs)
    try:
        made = await asyncio.to_thread(create, caller.account_id, caller.key_id, new)
    except TooManyJobsError as error:
        raise ApiError("job_limit", f"{str(error).capitalize()}.") from None
    return encode_answer(_build_job(made))


@get_route("/v1/jobs", JobPage, summary="Your jobs", parameters=(JOBS_LIMIT, CURSOR), failures=("invalid_cursor",), **_COMMON)
def jobs(values: ParameterValues) -> Question:
    """Return the account's jobs, newest first."""

    async def work(service: Service, caller: Caller) -> Answer:
        query, cursor, limit = ("jobs", str(caller.account_id)), values[CURSOR], values[JOBS_LIMIT]
        before = None if cursor is None else decode_place(_CURSORS.decode(query, cursor))
        # One more than the page shows whether another one follows.
        found = await asyncio.to_thread(service.accounts.jobs.read_page, caller.account_id, limit=limit + 1, before=before)
        following = _CURSORS.encode(query, encode_place(found[limit - 1].job_id)) if len(found) > limit else None
        return encode_answer(JobPage([_build_job(one) for one in found[:limit]], following))

    return FreeQuestion(work)


@get_route("/v1/jobs/{id:str}", Job, summary="A job by id", parameters=(JOB_ID,), failures=("not_found",), **_COMMON)
def job(values: ParameterValues) -> Question:
    """Return the status and progress of a job."""

    async def work(service: Service, caller: Caller) -> Answer:
        return encode_answer(_build_job(await _find(service, caller, values[JOB_ID])))

    return FreeQuestion(work)


@delete_route("/v1/jobs/{id:str}", Job, summary="Cancel a job", parameters=(JOB_ID,), failures=("not_found",), **_COMMON)
def cancel_job(values: ParameterValues) -> Question:
    """Cancel a job; it costs nothing and has no result. A finished job stays as it is."""

    async def work(service: Service, caller: Caller) -> Answer:
        with _hide_unknown():
            cancelled = await asyncio.to_thread(service.accounts.jobs.cancel, caller.account_id, values[JOB_ID])
        return encode_answer(_build_job(cancelled))

    return FreeQuestion(work)


@get_route(
    "/v1/jobs/{id:str}/result",
    Job,
    summary="The result of a job",
    parameters=(JOB_ID,),
    failures=("not_found", "job_unfinished"),
    other_types=tuple(MEDIA_TYPES.values()),
    is_file=True,
    **_COMMON,
)
def job_result(values: ParameterValues) -> Question:
    """Return the results of all rows in their order, for a week after the end of the job.

    NDJSON has the rows of bulk resolve. CSV and Parquet have `row`, `input`, `status`, `id`, `name`, `isrc`, `match_class`, `match_score`
    and `result`, the row of bulk resolve as JSON.
    """

    async def work(service: Service, caller: Caller) -> Answer:
        found = await _find(service, caller, values[JOB_ID])
        if found.status != SUCCEEDED:
            raise ApiError("job_unfinished", f"The status of the job is {found.status}.")
        result = JobFolder(service.settings.jobs_folder, found.job_id).get_result(found.result_format)
        if not result.exists():
            raise ApiError("not_found", "The result was deleted a week after the end of the job.")
        headers = {"content-length": str(result.stat().st_size), "cache-control": NO_STORE}
        return await StreamedAnswer.start(_read_pieces(result), MEDIA_TYPES[found.result_format], headers)

    return FreeQuestion(work)


def _read_pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while piece := content.read(_PIECE_BYTES):
            yield piece


async def _find(service: Service, caller: Caller, job_id: str) -> StoredJob:
    with _hide_unknown():
        return await asyncio.to_thread(service.accounts.jobs.get, caller.account_id, job_id)


@contextmanager
def _hide_unknown() -> Iterator[None]:
    """Answer 404 for a job of another account, as for one that does not exist."""
    try:
        yield
    except UnknownError:
        raise ApiError("not_found", "The account has no such job.") from None


def _build_job(stored: StoredJob) -> Job:
    return Job(
        id=stored.job_id,
        status=stored.status,
        kind=stored.kind,
        input_type=stored.input_type,
        format=stored.input_format,
        result_format=stored.result_format,
        url=stored.url,
        rows=stored.row_count,
        rows_done=stored.done_count,
        rows_matched=stored.matched_count,
        credits_reserved=stored.reserved,
        credits_charged=stored.charged,
        builds=stored.builds.split(),
        error=stored.error,
        created_at=format_rfc3339(stored.created_at),
        finished_at=None if stored.finished_at is None else format_rfc3339(stored.finished_at),
    )
