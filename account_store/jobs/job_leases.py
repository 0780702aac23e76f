"""Leases on bulk jobs: one worker at a time works on a job, for a turn; another takes over the job of a dead one.

    lease = leases.claim()
    leases.reserve(lease, rows, allowed)              # credits, once for each job
    leases.record(lease, done=5000, matched=4812, build="20261127-0100")
    leases.end(lease, SUCCEEDED)                      # or `release`: the next turn is another job's

Each claim increments `lease_token`, and every write compares it under the row's lock. A worker that comes back from a suspension writes
nothing. Time is the database's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from account_store.errors import AccountError
from account_store.jobs.job_store import RUNNING, UNFINISHED, Job, build_job, end_job
from account_store.jobs.job_tables import bulk_job
from account_store.ledger.direct_credits import take_available
from account_store.streams.leases import read_database_ms

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sqlalchemy import Connection, Engine, Row

    from account_store.clock import Clock

JOB_LEASE_SECONDS = 10.0
"""Time after which the job of a dead worker is free. A thousand rows take a fraction of it."""
MOST_TRIES = 5
"""Claims without progress after which a job fails: its input kills workers."""


class JobLeaseLostError(AccountError):
    """The job was cancelled, or another worker has it. The former holder must not write."""

    code = "lease_lost"


@dataclass(frozen=True, slots=True)
class JobLease:
    """A job that this worker holds; `key_id` is the key under which it was sent."""

    job: Job
    key_id: int
    token: int
    tries: int


class JobLeases:
    """The leases of one worker, for one thread."""

    def __init__(self, engine: Engine, clock: Clock, seconds: float = JOB_LEASE_SECONDS) -> None:
        """Hold each lease for `seconds` after its last write."""
        self._engine = engine
        self._clock = clock
        self._milliseconds = round(seconds * 1000)

    def claim(self) -> JobLease | None:
        """Claim the unfinished job that has waited longest for its turn; None when there is none."""
        with self._engine.begin() as connection:
            now = read_database_ms(connection)
            is_free = or_(bulk_job.c.lease_ends_ms.is_(None), bulk_job.c.lease_ends_ms < now)
            waiting = select(bulk_job).where(bulk_job.c.status.in_(UNFINISHED), is_free)
            row = connection.execute(
                waiting.order_by(bulk_job.c.turn_ms, bulk_job.c.job_id).limit(1).with_for_update(skip_locked=True)
            ).one_or_none()
            if row is None:
                return None
            token, tries = row.lease_token + 1, row.tries + 1
            values = {"status": RUNNING, "lease_token": token, "tries": tries, "turn_ms": now, "lease_ends_ms": now + self._milliseconds}
            connection.execute(bulk_job.update().where(bulk_job.c.job_id == row.job_id).values(values))
        return JobLease(build_job(row), row.key_id, token, tries)

    def renew(self, lease: JobLease) -> None:
        """Extend the lease. JobLeaseLostError."""
        self._write(lease)

    def reserve(self, lease: JobLease, rows: int, *, allowed: int) -> int:
        """Set `rows` credits aside, or what is left of the month; return how many. A repeat changes nothing. JobLeaseLostError."""
        with self._engine.begin() as connection:
            row = self._hold(connection, lease)
            if row.reserved is not None:
                return int(row.reserved)
            granted, day = take_available(connection, row.account_id, row.key_id, rows, allowed=allowed, now=self._clock())
            self._update(connection, lease, {"row_count": rows, "reserved": granted, "day": day})
        return granted

    def record(self, lease: JobLease, *, done: int, matched: int, build: str) -> None:
        """Record the progress of the job, and a build that answered rows. JobLeaseLostError."""
        with self._engine.begin() as connection:
            row = self._hold(connection, lease)
            builds = row.builds if build in row.builds.split() else f"{row.builds} {build}".strip()
            self._update(connection, lease, {"done_count": done, "matched_count": matched, "builds": builds, "tries": 0})

    def release(self, lease: JobLease) -> None:
        """End the turn. JobLeaseLostError."""
        with self._engine.begin() as connection:
            self._hold(connection, lease)
            self._update(connection, lease, {"turn_ms": read_database_ms(connection), "lease_ends_ms": None})

    def end(self, lease: JobLease, status: str, error: str | None = None) -> None:
        """End the job. JobLeaseLostError."""
        with self._engine.begin() as connection:
            self._hold(connection, lease)
            end_job(connection, lease.job.job_id, status, self._clock(), error)

    def find_finished(self, job_ids: Iterable[str]) -> dict[str, tuple[str, datetime | None]]:
        """Return the status of each of these jobs, and when it finished, None for an unfinished one; unknown ids are absent."""
        query = select(bulk_job.c.job_id, bulk_job.c.status, bulk_job.c.finished_at).where(bulk_job.c.job_id.in_(list(job_ids)))
        with self._engine.connect() as connection:
            return {row.job_id: (row.status, row.finished_at) for row in connection.execute(query)}

    def _write(self, lease: JobLease) -> None:
        with self._engine.begin() as connection:
            self._hold(connection, lease)
            self._update(connection, lease, {})

    def _hold(self, connection: Connection, lease: JobLease) -> Row[Any]:
        is_mine = (bulk_job.c.job_id == lease.job.job_id) & (bulk_job.c.lease_token == lease.token) & (bulk_job.c.status == RUNNING)
        row = connection.execute(select(bulk_job).where(is_mine).with_for_update()).one_or_none()
        if row is None:
            raise JobLeaseLostError(f"job {lease.job.job_id} was cancelled or is another worker's")
        return row

    def _update(self, connection: Connection, lease: JobLease, values: dict[str, Any]) -> None:
        extended = {"lease_ends_ms": read_database_ms(connection) + self._milliseconds} | values
        connection.execute(bulk_job.update().where(bulk_job.c.job_id == lease.job.job_id).values(extended))
