"""The asynchronous client: the generated methods, and conveniences for bulk, jobs and files."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx

from music_catalog.client import ROWS_A_REQUEST, UNFINISHED, read_place, split
from music_catalog.errors import ConnectionFailedError, JobEndedError
from music_catalog.generated.asynchronous import AsyncOperations
from music_catalog.messages import (
    TIMEOUT,
    build_error,
    build_headers,
    build_request,
    build_upload_headers,
    decode_answer,
    read_parts_async,
    read_retry_after,
)
from music_catalog.retries import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from types import TracebackType

    from music_catalog.generated.types import Identified, Job, ResolvedRow
    from music_catalog.operation import Content, Operation, T


class AsyncClient(AsyncOperations):
    """An asynchronous client of one server and one key, for one event loop."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        retries: RetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`url` has neither path nor slash at its end. Both come from the environment if they are left out."""
        base, found_key = read_place(url, key)
        self.retries = retries or RetryPolicy()
        self.credits_remaining: int | None = None
        self._http = httpx.AsyncClient(base_url=base, headers=build_headers(found_key), timeout=TIMEOUT, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def call(
        self,
        operation: Operation[T],
        *,
        path: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        content: Content | None = None,
        media_type: str | None = None,
        idempotency_key: str | None = None,
    ) -> T:
        """Send a request until it is answered or the retries end; return the decoded answer. ApiError, ConnectionFailedError."""
        request = build_request(operation, path, query, body, idempotency_key)
        if content is not None:
            request["headers"] |= build_upload_headers(content, media_type)
        for attempt in itertools.count(1):
            try:
                answer = await self._http.request(**request, content=None if content is None else read_parts_async(content))
            except httpx.TransportError as error:
                wait = self.retries.find_wait(operation, attempt, None)
                if wait is None:
                    raise ConnectionFailedError(f"{operation.method} {request['url']}: {error!r} after {attempt} attempts") from error
            else:
                if answer.is_success:
                    if left := answer.headers.get("x-credits-remaining"):
                        self.credits_remaining = int(left)
                    return decode_answer(operation, answer)
                problem = build_error(answer)
                wait = self.retries.find_wait(
                    operation, attempt, answer.status_code, code=problem.code, retry_after=read_retry_after(answer)
                )
                if wait is None:
                    raise problem
            await asyncio.sleep(wait)
        raise AssertionError("the loop ends with an answer or an error")

    async def identify_file(self, file: Path | str, *, mode: str | None = None) -> Identified:
        """Identify an audio file, which is sent in parts. `mode="timeline"` lists every track of a long one."""
        return await self.identify_upload(Path(file), mode=mode)

    async def resolve_tracks(self, input_type: str, items: Iterable[Any]) -> AsyncIterator[ResolvedRow]:
        """Resolve any number of codes, ids or names, a hundred a request; yield a row for each."""
        for rows in split(items, ROWS_A_REQUEST):
            for row in (await self.resolve(input_type=input_type, items=rows)).results:
                yield row

    async def wait_for_job(self, job_id: str, *, poll_seconds: float = 1.0, on_progress: Callable[[Job], None] | None = None) -> Job:
        """Wait until a job has succeeded. JobEndedError: it failed or was cancelled."""
        while True:
            job = await self.job(job_id)
            if on_progress:
                on_progress(job)
            if job.status not in UNFINISHED:
                break
            await asyncio.sleep(poll_seconds)
        if job.status != "succeeded":
            raise JobEndedError(job)
        return job
