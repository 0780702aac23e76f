"""Tests of bulk jobs in the account store: limits, leases, and credits that are taken and given back exactly once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, update

from account_store.errors import UnknownError
from account_store.jobs.job_leases import MOST_TRIES, JobLease, JobLeaseLostError, JobLeases
from account_store.jobs.job_store import CANCELLED, FAILED, QUEUED, RUNNING, SUCCEEDED, Job, NewJob, TooManyJobsError
from account_store.jobs.job_tables import bulk_job
from account_store.opaque_ids import generate_opaque_id
from account_store.schema import credit_day, credit_month
from account_store.webhooks.webhook_tables import webhook_event
from tests.account_store.conftest import new_caller

if TYPE_CHECKING:
    from account_store import Accounts, Caller
    from tests.account_store.conftest import HandClock

NEW = NewJob("tracks", "isrc", "csv", "ndjson", None)


@pytest.fixture
def leases(accounts: Accounts, clock: HandClock) -> JobLeases:
    """Return the leases of a worker; no job of an earlier test is left."""
    with accounts.engine.begin() as connection:
        connection.execute(bulk_job.delete())
    return JobLeases(accounts.engine, clock)


def create(accounts: Accounts, caller: Caller, most: int = 100) -> Job:
    return accounts.jobs.create(caller.account_id, caller.key_id, NEW, job_id=generate_opaque_id(), most=most)


def claim(leases: JobLeases) -> JobLease:
    lease = leases.claim()
    assert lease is not None
    return lease


def used(accounts: Accounts, caller: Caller) -> tuple[int, int, int]:
    """Return credits of the month, credits of the day, requests of the day."""
    with accounts.engine.connect() as connection:
        month = connection.scalar(select(credit_month.c.used).where(credit_month.c.account_id == caller.account_id)) or 0
        day = connection.execute(select(credit_day).where(credit_day.c.account_id == caller.account_id)).one_or_none()
    return month, day.credits if day else 0, day.requests if day else 0


def test_a_job_goes_from_queued_to_succeeded_and_keeps_its_credits(accounts: Accounts, leases: JobLeases) -> None:
    caller = new_caller(accounts)
    made = create(accounts, caller)
    assert (made.status, made.row_count, made.reserved, made.charged) == (QUEUED, None, None, 0)
    lease = claim(leases)
    assert (lease.job.job_id, lease.key_id) == (made.job_id, caller.key_id)
    assert leases.reserve(lease, 300, allowed=1_000) == 300
    assert leases.reserve(lease, 300, allowed=1_000) == 300, "a repeat changes nothing"
    assert used(accounts, caller) == (300, 300, 1)
    leases.record(lease, done=200, matched=150, build="one")
    leases.record(lease, done=300, matched=220, build="two")
    leases.record(lease, done=300, matched=220, build="two")
    running = accounts.jobs.get(caller.account_id, made.job_id)
    assert (running.status, running.row_count, running.done_count, running.matched_count, running.builds, running.charged) == (
        *(RUNNING, 300, 300, 220, "one two", 0),
    )
    leases.end(lease, SUCCEEDED)
    done = accounts.jobs.get(caller.account_id, made.job_id)
    assert (done.status, done.charged, used(accounts, caller)) == (SUCCEEDED, 300, (300, 300, 1))
    assert accounts.jobs.cancel(caller.account_id, made.job_id) == done
    with pytest.raises(JobLeaseLostError):
        leases.record(lease, done=1, matched=1, build="x")


@pytest.mark.parametrize("end", [FAILED, CANCELLED])
def test_credits_of_a_job_without_result_go_back_to_their_month_once(
    accounts: Accounts, leases: JobLeases, clock: HandClock, end: str
) -> None:
    caller = new_caller(accounts)
    made, lease = create(accounts, caller), claim(leases)
    leases.reserve(lease, 300, allowed=1_000)
    clock.move(days=30)
    if end == FAILED:
        leases.end(lease, FAILED, "row 7")
    else:
        accounts.jobs.cancel(caller.account_id, made.job_id)
    ended = accounts.jobs.cancel(caller.account_id, made.job_id)
    assert (ended.status, ended.charged, ended.finished_at) == (end, 0, clock.now)
    assert used(accounts, caller) == (0, 0, 0)
    with pytest.raises(JobLeaseLostError):
        leases.end(lease, SUCCEEDED)
    assert used(accounts, caller) == (0, 0, 0)


def test_a_job_takes_at_most_what_is_left_of_the_month(accounts: Accounts, leases: JobLeases) -> None:
    caller = new_caller(accounts)
    create(accounts, caller)
    assert leases.reserve(claim(leases), 700, allowed=1_000) == 700
    create(accounts, caller)
    assert leases.reserve(claim(leases), 700, allowed=1_000) == 300
    create(accounts, caller)
    # A smaller plan since.
    assert leases.reserve(claim(leases), 700, allowed=500) == 0
    assert used(accounts, caller)[0] == 1_000


def test_the_job_that_waited_longest_has_its_turn(accounts: Accounts, leases: JobLeases) -> None:
    caller = new_caller(accounts)
    first, second = create(accounts, caller), create(accounts, caller)
    lease = claim(leases)
    assert lease.job.job_id == first.job_id
    leases.release(lease)
    later = claim(leases)
    assert later.job.job_id == second.job_id
    assert claim(leases).job.job_id == first.job_id
    assert leases.claim() is None, "all are held"


def test_the_job_of_a_dead_worker_is_taken_over_and_its_former_holder_writes_nothing(accounts: Accounts, leases: JobLeases) -> None:
    caller = new_caller(accounts)
    create(accounts, caller)
    for tries in range(1, MOST_TRIES + 2):
        former = claim(leases)
        assert former.tries == tries
        with accounts.engine.begin() as connection:
            connection.execute(update(bulk_job).values(lease_ends_ms=1))
    lease = claim(leases)
    with pytest.raises(JobLeaseLostError):
        leases.reserve(former, 5, allowed=1_000)
    with pytest.raises(JobLeaseLostError):
        leases.renew(former)
    leases.record(lease, done=1, matched=0, build="x")
    leases.release(lease)
    assert claim(leases).tries == 1, "progress counts the tries anew"
    assert used(accounts, caller) == (0, 0, 0)


def test_an_account_has_so_many_unfinished_jobs(accounts: Accounts, leases: JobLeases) -> None:
    caller, stranger = new_caller(accounts), new_caller(accounts)
    made = [create(accounts, caller, most=2) for _ in range(2)]
    with pytest.raises(TooManyJobsError, match="2 jobs"):
        create(accounts, caller, most=2)
    create(accounts, stranger, most=2)
    accounts.jobs.cancel(caller.account_id, made[0].job_id)
    third = create(accounts, caller, most=2)
    pages = [accounts.jobs.read_page(caller.account_id, limit=2, before=before) for before in (None, made[1].job_id)]
    assert [[one.job_id for one in page] for page in pages] == [[third.job_id, made[1].job_id], [made[0].job_id]]
    with pytest.raises(UnknownError):
        accounts.jobs.get(stranger.account_id, third.job_id)
    with pytest.raises(UnknownError):
        accounts.jobs.cancel(stranger.account_id, third.job_id)
    assert set(leases.find_finished([third.job_id, "nobody"])) == {third.job_id}


def test_the_end_is_an_event_of_the_same_transaction(accounts: Accounts, leases: JobLeases) -> None:
    caller = new_caller(accounts)
    accounts.webhooks.create(caller.account_id, "https://93.184.215.14/hook", ("job.finished",), "", is_vetted=True)
    create(accounts, caller)
    lease = claim(leases)
    with pytest.raises(JobLeaseLostError):
        leases.end(replace(lease, token=lease.token + 1), SUCCEEDED)
    events = select(webhook_event.c.body).where(webhook_event.c.account_id == caller.account_id)
    with accounts.engine.connect() as connection:
        assert connection.execute(events).all() == []
    leases.end(lease, FAILED, "no rows")
    with accounts.engine.connect() as connection:
        [row] = connection.execute(events).all()
    assert '"status":"failed"' in row.body
    assert '"error":"no rows"' in row.body
