"""Errors that the client raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from music_catalog.generated.types import Job, ParameterProblem


class CatalogError(Exception):
    """Any error of this client."""


class ConnectionFailedError(CatalogError):
    """The server did not answer, after all attempts."""


class ApiError(CatalogError):
    """The server refused the request. Act on `code`: it never changes its meaning."""

    def __init__(
        self, status: int, code: str, detail: str, *, errors: list[ParameterProblem], request_id: str | None, retry_after: float | None
    ) -> None:
        """`retry_after` is in seconds."""
        super().__init__(f"{status} {code}: {detail}")
        self.status, self.code, self.detail = status, code, detail
        self.errors, self.request_id, self.retry_after = errors, request_id, retry_after


class NotFoundError(ApiError):
    """Nothing has this id, code or name."""


class JobEndedError(CatalogError):
    """A bulk job failed or was cancelled."""

    def __init__(self, job: Job) -> None:
        """Keep the job."""
        super().__init__(f"the job {job.id} is {job.status}: {job.error}")
        self.job = job


class SignatureError(CatalogError):
    """A message was not signed with the secret, or is too old."""
