"""The work on bulk jobs: input, chunks of rows, result. Every step may be killed and repeated.

A worker has a job for a turn of some seconds, then the next one, so that a large job does not keep small ones waiting. Chunks that are
on disk are not resolved again. Credits are reserved when the rows are counted, and charged or given back when the job ends, each in the
transaction that records it.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from account_store.errors import AccountError
from account_store.jobs.job_leases import MOST_TRIES, JobLeaseLostError, JobLeases
from account_store.jobs.job_store import FAILED, SUCCEEDED
from catalog_api.bulk_rows import encode_row, is_matched
from catalog_api.credit_prices import RESOLVED_ROW
from catalog_api.jobs.job_folder import CHUNK_ROWS, JobFolder, count_chunks, list_job_ids
from catalog_api.jobs.job_input import InvalidInputError, prepare_input
from catalog_api.jobs.job_result import write_result
from catalog_api.jobs.reference_input import fetch_input
from catalog_api.row_resolvers import ROW_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from account_store.accounts import Accounts
    from account_store.jobs.job_leases import JobLease
    from catalog_api.live_catalog import LiveCatalog

log = structlog.get_logger("catalog_api")

LARGEST_INPUT = 256 * 2**20
"""Bytes. A million rows of names take some 60 MB."""
KEPT = timedelta(days=7)
"""Time for which results stay."""
TURN_SECONDS = 5.0
_ROWS_AT_ONCE = 1_000
"""Keys that one set-based read of the catalog takes (serving/store.py)."""
_LOOK_SECONDS = 0.2
_CLEAN_SECONDS = 60.0
_ORPHAN_SECONDS = 86_400.0
"""Age after which files without a job are removed: the upload of a request that died."""


class JobWorker:
    """Works on jobs until it is stopped."""

    def __init__(self, accounts: Accounts, live: LiveCatalog, root: Path, templates: Mapping[str, str]) -> None:
        """`root` is the folder of jobs; `templates` are the URLs of links by platform."""
        self._accounts = accounts
        self._leases = JobLeases(accounts.engine, accounts.clock)
        self._live = live
        self._root = root
        self._templates = templates
        self._stopping = threading.Event()
        self._clean_at = 0.0

    def stop(self) -> None:
        """End after the present chunk."""
        self._stopping.set()

    def run(self) -> None:
        """Work until `stop`."""
        while not self._stopping.is_set():
            if not self.run_turn():
                self._stopping.wait(_LOOK_SECONDS)

    def run_turn(self) -> bool:
        """Work on a job for a turn; return False when there is none, or nothing to look rows up in. Errors are logged."""
        lease = None
        try:
            if time.monotonic() >= self._clean_at:
                self._remove_old_files()
                self._clean_at = time.monotonic() + _CLEAN_SECONDS
            if self._live.snapshot is None:
                return False
            lease = self._leases.claim()
            if lease is None:
                return False
            self._work(lease)
        except JobLeaseLostError as lost:
            log.info("a job was cancelled or taken over", reason=str(lost))
        # Any error: the next turn tries again, and the lease counts the tries.
        except Exception:
            log.exception("work on a job failed", job=lease and lease.job.job_id)
            self._give_up_turn(lease)
            return False
        return True

    def _give_up_turn(self, lease: JobLease | None) -> None:
        try:
            if lease is not None:
                self._leases.release(lease)
        except AccountError as error:
            log.warning("a lease is left to expire", reason=str(error))

    def _work(self, lease: JobLease) -> None:
        job = lease.job
        if lease.tries > MOST_TRIES:
            self._leases.end(lease, FAILED, f"the work on the input failed {MOST_TRIES} times")
            return
        until = time.monotonic() + TURN_SECONDS
        folder = JobFolder(self._root, job.job_id)
        try:
            rows = folder.read_prepared() or self._prepare(lease, folder)
        except InvalidInputError as error:
            self._leases.end(lease, FAILED, str(error))
            return
        granted = self._leases.reserve(lease, rows * RESOLVED_ROW, allowed=self._accounts.get(job.account_id).plan.credits)
        if self._resolve_chunks(lease, folder, rows, granted // RESOLVED_ROW, until):
            self._finish(lease, folder, rows)
        else:
            self._leases.release(lease)

    def _prepare(self, lease: JobLease, folder: JobFolder) -> int:
        job = lease.job
        renew = _Renewal(self._leases, lease)
        folder.make()
        if not folder.input.exists():
            if job.url is None:
                raise InvalidInputError("the upload is not in the folder of jobs of this server")
            fetch_input(self._accounts.outbound, job.url, folder, largest=LARGEST_INPUT, after_part=renew)
        most = self._accounts.get(job.account_id).plan.job_rows
        form = ROW_KINDS[job.kind].forms[job.input_type]
        return prepare_input(folder, job.input_format, job.input_type, form, most_rows=most, after_chunk=renew)

    def _resolve_chunks(self, lease: JobLease, folder: JobFolder, rows: int, granted: int, until: float) -> bool:
        """Resolve chunks until the turn is over; return whether all are resolved."""
        matched = {chunk: count for chunk, (_, count) in folder.find_rows().items()}
        recorded = lease.job.done_count
        for chunk in range(count_chunks(rows)):
            if chunk in matched:
                continue
            if self._stopping.is_set() or time.monotonic() > until:
                return False
            build, matched[chunk] = self._resolve_chunk(lease, folder, chunk, granted - chunk * CHUNK_ROWS)
            # Chunks are done in order, so all before this one are.
            recorded = min(rows, (chunk + 1) * CHUNK_ROWS)
            self._leases.record(lease, done=recorded, matched=sum(matched.values()), build=build)
        # A kill between the last chunk and its record.
        if recorded < rows:
            self._leases.record(lease, done=rows, matched=sum(matched.values()), build="")
        return True

    def _resolve_chunk(self, lease: JobLease, folder: JobFolder, chunk: int, granted: int) -> tuple[str, int]:
        """Write the results of a chunk, whose rows beyond `granted` are skipped; return the build and the number of matched rows."""
        kind = ROW_KINDS[lease.job.kind]
        items = folder.read_items(chunk)
        tried = max(0, min(granted, len(items)))
        rows: list[bytes] = []
        renew = _Renewal(self._leases, lease)
        # One build for each chunk: a row may depend on several reads.
        with self._live.hold() as catalog:
            for start in range(0, tried, _ROWS_AT_ONCE):
                rows += kind.resolve(catalog, self._templates, lease.job.input_type, items[start : min(start + _ROWS_AT_ONCE, tried)])
                renew()
            build = catalog.snapshot_id
        matched = sum(map(is_matched, rows))
        rows += [encode_row(item, b"skipped_no_credits", kind.skipped) for item in items[tried:]]
        folder.write_rows(chunk, rows, matched)
        return build, matched

    def _finish(self, lease: JobLease, folder: JobFolder, rows: int) -> None:
        form, chunks = lease.job.result_format, folder.find_rows()
        result = folder.get_result(form)
        if not result.exists():
            with folder.write(result.name) as file:
                ordered = [chunks[chunk][0] for chunk in range(count_chunks(rows))]
                write_result(file, form, ordered, after_chunk=_Renewal(self._leases, lease))
        # Only then are the chunks needless: a kill before this line repeats the above from them.
        self._leases.end(lease, SUCCEEDED)
        folder.remove_all_but_result(form)
        log.info("a job has finished", job=lease.job.job_id, rows=rows)

    def _remove_old_files(self) -> None:
        ids = list_job_ids(self._root)
        known, now = self._leases.find_finished(ids), self._accounts.clock()
        for job_id in ids:
            folder = JobFolder(self._root, job_id)
            if job_id not in known:
                is_old = time.time() - folder.place.stat().st_mtime > _ORPHAN_SECONDS
            else:
                status, finished_at = known[job_id]
                is_old = finished_at is not None and (status != SUCCEEDED or now - finished_at > KEPT)
            if is_old:
                folder.remove()


class _Renewal:
    """Renews a lease when it is called, at most every second."""

    def __init__(self, leases: JobLeases, lease: JobLease) -> None:
        self._leases, self._lease = leases, lease
        self._at = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() > self._at + 1:
            self._leases.renew(self._lease)
            self._at = time.monotonic()
