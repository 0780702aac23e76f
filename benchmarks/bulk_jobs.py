"""Bulk jobs on one core: rows a second, processor time, memory, and exact credits.

    python -m benchmarks.bulk_jobs CATALOG [--rows 1000000] [--names 100000] [--form ndjson] [--seed 11]

CATALOG is a catalog root with a published snapshot of tables, such as `benchmarks.catalog_world` makes. Rows are drawn at random from its
recordings, with repetition; every tenth is unknown. The time is that of the whole job in one process: reading the input, chunks on disk,
progress in SQLite, the result.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from account_store.accounts import Accounts
from account_store.jobs.job_store import SUCCEEDED, NewJob
from account_store.opaque_ids import generate_opaque_id
from account_store.plans import Terms
from catalog_api.jobs.job_folder import JobFolder
from catalog_api.jobs.job_worker import JobWorker
from catalog_api.live_catalog import LiveCatalog
from catalog_api.settings import ApiSettings

UNKNOWN_SHARE = 0.1
_CREDITS = 1_000_000_000


def draw_rows(catalog: Path, input_type: str, count: int, seed: int) -> list[Any]:
    """Return rows of an input type."""
    rng = np.random.default_rng(seed)
    tables = (catalog / "current").resolve() / "tables"
    if input_type == "isrc":
        known = pl.scan_parquet(tables / "recording_isrc/*.parquet").select("isrc").collect().to_series()
        unknown: Any = "GBZZZ0000001"
    elif input_type == "streamsvc_a_id":
        links = pl.scan_parquet(tables / "platform_link/*.parquet").filter(pl.col("source") == "streamsvc_a")
        known = links.select("external_id").collect().to_series()
        unknown = "0" * 22
    else:
        named = pl.scan_parquet(tables / "recording/*.parquet").select(artist="artist_credit", title="title").collect()
        known = named.to_struct("name")
        unknown = {"artist": "Nobody Of That Name", "title": "Nothing Of The Kind"}
    drawn = known.gather(rng.integers(0, len(known), count)).to_list()
    return [unknown if is_unknown else row for row, is_unknown in zip(drawn, rng.random(count) < UNKNOWN_SHARE, strict=True)]


def run_job(catalog: Path, input_type: str, rows: list[Any], form: str) -> None:
    """Run a job and print its figures."""
    with tempfile.TemporaryDirectory() as place, closing(Accounts.open(f"sqlite:///{place}/accounts.db")) as accounts:
        live = LiveCatalog(catalog, verify_contents=False)
        live.look()
        account = accounts.create("bench", "custom", Terms(credits=_CREDITS, price_eur=Decimal(1), requests_per_second=10))
        key = accounts.keys.create(account.account_id)
        root, job_id = Path(place) / "jobs", generate_opaque_id()
        folder = JobFolder(root, job_id)
        folder.make()
        with folder.input.open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        accounts.jobs.create(account.account_id, key.key_id, NewJob("tracks", input_type, "ndjson", form, None), job_id=job_id, most=1)
        worker = JobWorker(accounts, live, root, ApiSettings().url_templates)
        began, cpu = time.perf_counter(), time.process_time()
        while worker.run_turn():
            pass
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        job, used = accounts.jobs.get(account.account_id, job_id), accounts.usage.read_month_now(account.account_id).used
        if job.status != SUCCEEDED or used != len(rows):
            raise SystemExit(f"the job is {job.status} ({job.error}) and cost {used} credits for {len(rows)} rows")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        size = folder.get_result(form).stat().st_size / 2**20
        print(
            f"{input_type:15} {form:8} {len(rows):9,} rows  {len(rows) / seconds:9,.0f} rows/s  {len(rows) / cpu:9,.0f} rows/s of CPU  "
            f"{job.matched_count / len(rows):.3f} matched  {peak:,} MiB peak  {size:,.0f} MiB result  {used:,} credits"
        )
        live.close()


def main() -> None:
    """Run the jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--names", type=int, default=100_000)
    parser.add_argument("--form", default="ndjson")
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for input_type, count in (("isrc", options.rows), ("streamsvc_a_id", options.rows), ("track_name", options.names)):
        run_job(options.catalog, input_type, draw_rows(options.catalog, input_type, count, options.seed), options.form)


if __name__ == "__main__":
    main()
