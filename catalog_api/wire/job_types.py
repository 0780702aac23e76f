"""Bulk jobs."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from account_store.jobs.job_store import JOB_STATUSES
from catalog_api.jobs.job_input import JOB_FORMATS
from catalog_api.row_resolvers import ROW_KINDS
from catalog_api.wire.values import Timestamp

_Count = Annotated[int, Meta(ge=0)]
_Format = Annotated[str, Meta(extra_json_schema={"enum": list(JOB_FORMATS)})]


class Job(msgspec.Struct):
    """A bulk job. `rows` and `credits_reserved` are null until the input was read; `rows_done` shows the progress.

    `credits_charged` is 0 until the job has succeeded: a failed or cancelled one costs nothing. `builds`: those that answered rows.
    """

    id: str
    status: Annotated[str, Meta(extra_json_schema={"enum": list(JOB_STATUSES)})]
    kind: Annotated[str, Meta(extra_json_schema={"enum": list(ROW_KINDS)})]
    input_type: str
    format: _Format
    result_format: _Format
    url: str | None
    rows: _Count | None
    rows_done: _Count
    rows_matched: _Count
    credits_reserved: _Count | None
    credits_charged: _Count
    builds: list[str]
    error: str | None
    created_at: Timestamp
    finished_at: Timestamp | None


class JobPage(msgspec.Struct):
    """A page of the account's jobs, newest first."""

    results: list[Job]
    next_cursor: str | None
