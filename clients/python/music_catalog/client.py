"""The blocking client: the generated methods, and conveniences for bulk, jobs and files."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx

from music_catalog.errors import ConnectionFailedError, JobEndedError
from music_catalog.generated import operations as op
from music_catalog.generated.blocking import Operations
from music_catalog.messages import (
    TIMEOUT,
    build_error,
    build_headers,
    build_request,
    build_upload_headers,
    decode_answer,
    read_parts,
    read_retry_after,
)
from music_catalog.retries import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from music_catalog.generated.types import Identified, Job, ResolvedArtistRow, ResolvedReleaseRow, ResolvedRow
    from music_catalog.operation import Content, Operation, T

ROWS_A_REQUEST = 100
"""The limit of bulk resolve."""
URL_VARIABLE, KEY_VARIABLE = "MUSIC_CATALOG_URL", "MUSIC_CATALOG_KEY"
UNFINISHED = frozenset({"queued", "running"})


def read_place(url: str | None, key: str | None) -> tuple[str, str]:
    """Return address and key, from the environment where they are not given. ValueError names what is missing."""
    found_url, found_key = url or os.environ.get(URL_VARIABLE), key or os.environ.get(KEY_VARIABLE)
    if not found_url or not found_key:
        raise ValueError(f"address and key are needed: pass them, or set {URL_VARIABLE} and {KEY_VARIABLE}")
    return found_url.rstrip("/"), found_key


class Client(Operations):
    """A client of one server and one key. Any number of threads may share it."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        retries: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`url` has neither path nor slash at its end. Both come from the environment if they are left out."""
        base, found_key = read_place(url, key)
        self.retries = retries or RetryPolicy()
        self.credits_remaining: int | None = None
        """Credits left this month, as the last answer said."""
        self._http = httpx.Client(base_url=base, headers=build_headers(found_key), timeout=TIMEOUT, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(
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
                # Parts are read anew for each attempt.
                answer = self._http.request(**request, content=None if content is None else read_parts(content))
            except httpx.TransportError as error:
                wait = self.retries.find_wait(operation, attempt, None)
                if wait is None:
                    raise ConnectionFailedError(f"{operation.method} {request['url']}: {error!r} after {attempt} attempts") from error
            else:
                if answer.is_success:
                    self._note(answer)
                    return decode_answer(operation, answer)
                problem = build_error(answer)
                wait = self.retries.find_wait(
                    operation, attempt, answer.status_code, code=problem.code, retry_after=read_retry_after(answer)
                )
                if wait is None:
                    raise problem
            time.sleep(wait)
        raise AssertionError("the loop ends with an answer or an error")

    def _note(self, answer: httpx.Response) -> None:
        if left := answer.headers.get("x-credits-remaining"):
            self.credits_remaining = int(left)

    def identify_file(self, file: Path | str, *, mode: str | None = None) -> Identified:
        """Identify an audio file, which is sent in parts. `mode="timeline"` lists every track of a long one."""
        return self.identify_upload(Path(file), mode=mode)

    def resolve_tracks(self, input_type: str, items: Iterable[Any]) -> Iterator[ResolvedRow]:
        """Resolve any number of codes, ids or names, a hundred a request; yield a row for each."""
        for rows in split(items, ROWS_A_REQUEST):
            yield from self.resolve(input_type=input_type, items=rows).results

    def resolve_many_artists(self, input_type: str, items: Iterable[Any]) -> Iterator[ResolvedArtistRow]:
        """Resolve any number of ids or names of artists; yield a row for each."""
        for rows in split(items, ROWS_A_REQUEST):
            yield from self.resolve_artists(input_type=input_type, items=rows).results

    def resolve_many_releases(self, input_type: str, items: Iterable[Any]) -> Iterator[ResolvedReleaseRow]:
        """Resolve any number of barcodes, ids or names of releases; yield a row for each."""
        for rows in split(items, ROWS_A_REQUEST):
            yield from self.resolve_releases(input_type=input_type, items=rows).results

    def wait_for_job(self, job_id: str, *, poll_seconds: float = 1.0, on_progress: Callable[[Job], None] | None = None) -> Job:
        """Wait until a job has succeeded. JobEndedError: it failed or was cancelled."""
        while True:
            job = self.job(job_id)
            if on_progress:
                on_progress(job)
            if job.status not in UNFINISHED:
                break
            time.sleep(poll_seconds)
        if job.status != "succeeded":
            raise JobEndedError(job)
        return job

    def save_job_result(self, job_id: str, destination: Path) -> int:
        """Stream the rows of a job into a file, which appears only when it is complete; return its bytes."""
        request = build_request(op.JOB_RESULT, {"id": job_id}, None, None, None)
        part = destination.with_name(destination.name + ".part")
        with self._http.stream(**request) as answer:
            if not answer.is_success:
                answer.read()
                raise build_error(answer)
            with part.open("wb") as file:
                for piece in answer.iter_bytes():
                    file.write(piece)
        part.replace(destination)
        return destination.stat().st_size


def split(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of `size` items; the last one may be shorter."""
    rest = iter(items)
    while rows := list(itertools.islice(rest, size)):
        yield rows
