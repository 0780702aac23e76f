from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from tests.catalog_api.in_process import answering, asked, published

if TYPE_CHECKING:
    from pathlib import Path


async def upload(place: Path, key: str, **settings: int) -> tuple[int, dict[str, Any]]:
    async with answering(place, key, **settings) as app:
        head, body = await asked(app, "POST", "/v1/jobs/resolve?input_type=isrc", key, [(b"content-type", b"text/csv")], b"isrc\nx\n")
    return head["status"], json.loads(body)


def test_upload_is_refused_while_the_disk_has_too_little_space_and_taken_afterwards(tmp_path: Path) -> None:
    key = published(tmp_path)
    status, problem = asyncio.run(upload(tmp_path, key, jobs_free_mb=10**12))
    assert (status, problem["code"]) == (503, "jobs_unavailable")
    assert problem["detail"] == "The input cannot be stored: No space left on device."
    assert list((tmp_path / "jobs").iterdir()) == [], "nothing half-written is left"
    status, job = asyncio.run(upload(tmp_path, key))
    assert (status, job["status"]) == (200, "queued")
    assert [folder.name for folder in (tmp_path / "jobs").iterdir()] == [job["id"]]
