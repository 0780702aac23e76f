"""Bulk jobs as their accounts see them: create, read, cancel.

A job is queued until a worker takes it, then running, then succeeded, failed or cancelled. Workers are in job_leases.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from account_store.clock import format_rfc3339
from account_store.errors import StateError, UnknownError
from account_store.jobs.job_tables import bulk_job
from account_store.ledger.direct_credits import give_back
from account_store.schema import account
from account_store.webhooks.event_types import JOB_FINISHED
from account_store.webhooks.outbox import emit

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection, Engine, Row

    from account_store.clock import Clock

QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED = JOB_STATUSES = ("queued", "running", "succeeded", "failed", "cancelled")
UNFINISHED = (QUEUED, RUNNING)


class TooManyJobsError(StateError):
    """The account has as many unfinished jobs as its plan allows."""

    code = "job_limit"


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to create: what its rows mean, the format of input and result, and the address of the input, None for an upload."""

    kind: str
    input_type: str
    input_format: str
    result_format: str
    url: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `row_count` and `reserved` are None until the input was read; `builds` are separated by blanks."""

    job_id: str
    account_id: int
    kind: str
    input_type: str
    input_format: str
    result_format: str
    url: str | None
    status: str
    row_count: int | None
    done_count: int
    matched_count: int
    reserved: int | None
    builds: str
    error: str | None
    created_at: datetime
    finished_at: datetime | None

    @property
    def charged(self) -> int:
        """Credits that the job has cost: those of its rows once it succeeded."""
        return (self.reserved or 0) if self.status == SUCCEEDED else 0


class Jobs:
    """The jobs of all accounts."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        """Use the tables behind `engine`."""
        self._engine = engine
        self._clock = clock

    def create(self, account_id: int, key_id: int, new: NewJob, *, job_id: str, most: int) -> Job:
        """Queue a job under an id of `generate_opaque_id`. TooManyJobsError: `most` are unfinished."""
        with self._engine.begin() as connection:
            # The lock on the account lets one request at a time count its jobs.
            connection.execute(select(account.c.account_id).where(account.c.account_id == account_id).with_for_update())
            is_open = (bulk_job.c.account_id == account_id) & bulk_job.c.status.in_(UNFINISHED)
            count = connection.scalar(select(func.count()).select_from(bulk_job).where(is_open)) or 0
            if count >= most:
                raise TooManyJobsError(f"{count} jobs of the account are unfinished: its plan allows {most} at once")
            facts = {field.name: getattr(new, field.name) for field in fields(new)}
            owner = {"job_id": job_id, "account_id": account_id, "key_id": key_id}
            connection.execute(bulk_job.insert().values(**owner, **facts, status=QUEUED, created_at=self._clock()))
            # Read before the commit: afterwards a worker may have taken it, and the caller is told that a new job is queued.
            return _read_job(connection, account_id, job_id)

    def get(self, account_id: int, job_id: str) -> Job:
        """Return a job of the account; UnknownError."""
        with self._engine.connect() as connection:
            return _read_job(connection, account_id, job_id)

    def read_page(self, account_id: int, *, limit: int, before: str | None = None) -> list[Job]:
        """Return jobs of the account, newest first: those older than the job `before`, at most `limit`."""
        # Ids of jobs ascend with time, within a second too.
        query = select(bulk_job).where(bulk_job.c.account_id == account_id).order_by(bulk_job.c.job_id.desc()).limit(limit)
        if before is not None:
            query = query.where(bulk_job.c.job_id < before)
        with self._engine.connect() as connection:
            return [build_job(row) for row in connection.execute(query)]

    def cancel(self, account_id: int, job_id: str) -> Job:
        """Cancel a job and give its credits back; a finished one stays as it is. UnknownError."""
        with self._engine.begin() as connection:
            job = _read_job(connection, account_id, job_id)
            if job.status in UNFINISHED:
                end_job(connection, job_id, CANCELLED, self._clock())
            return _read_job(connection, account_id, job_id)


def build_job(row: Row[Any]) -> Job:
    """Return the job of a row."""
    return Job(**{field.name: getattr(row, field.name) for field in fields(Job)})


def end_job(connection: Connection, job_id: str, status: str, now: datetime, error: str | None = None) -> bool:
    """End an unfinished job, in the transaction of the caller, with its event; give its credits back unless it succeeded.

    Return whether this call ended it. The row is locked first: credits go back once, whoever ends the job.
    """
    row = connection.execute(select(bulk_job).where(bulk_job.c.job_id == job_id).with_for_update()).one()
    if row.status not in UNFINISHED:
        return False
    if status != SUCCEEDED and row.reserved:
        give_back(connection, row.account_id, row.key_id, row.day, row.reserved)
    values = {"status": status, "error": error, "finished_at": now, "lease_ends_ms": None}
    connection.execute(bulk_job.update().where(bulk_job.c.job_id == job_id).values(values))
    job = build_job(connection.execute(select(bulk_job).where(bulk_job.c.job_id == job_id)).one())
    emit(connection, job.account_id, JOB_FINISHED, build_job_payload(job), occurred_at=now)
    return True


def build_job_payload(job: Job) -> dict[str, Any]:
    """Return the payload of the event that a job finished."""
    return {
        "id": job.job_id,
        "status": job.status,
        "rows": job.row_count,
        "rows_done": job.done_count,
        "rows_matched": job.matched_count,
        "credits_charged": job.charged,
        "error": job.error,
        "created_at": format_rfc3339(job.created_at),
    }


def _read_job(connection: Connection, account_id: int, job_id: str) -> Job:
    row = connection.execute(select(bulk_job).where(bulk_job.c.job_id == job_id, bulk_job.c.account_id == account_id)).one_or_none()
    if row is None:
        raise UnknownError(f"the account has no job {job_id}")
    return build_job(row)
