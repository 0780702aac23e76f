from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.dumps.platforms.streamsvc_c_dumps import staged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.pipeline.dumps.platforms.streamsvc_c_dumps import Row, Tables


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Return the empty folder of a dump."""
    folder = tmp_path / "dump"
    folder.mkdir()
    return folder


@pytest.fixture
def stage_files(tmp_path: Path) -> Callable[..., Tables]:
    """Return a function that stages a dump of streamsvc_c: files are given as name=records; `__` in a name stands for a dot."""

    def run(**files: list[Row] | bytes) -> Tables:
        dump = tmp_path / "dump"
        dump.mkdir()
        for name, content in files.items():
            raw = content if isinstance(content, bytes) else b"".join(json.dumps(record).encode() + b"\n" for record in content)
            (dump / name.replace("__", ".")).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
        return staged(dump, tmp_path / "staging")

    return run
