"""Tests that lines of the log stay whole when several processes write at once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOUR_PROCESSES_OF_TWO_VOICES = """
import logging, os, structlog
from catalog_store.log import log_json
log_json("info")
mine, framework = structlog.get_logger(), logging.getLogger("framework")
for child in range(4):
    if os.fork() == 0:
        for number in range(4000):
            mine.info("said", padding="x" * 100)
            framework.info("said", extra={"padding": "y" * 100})
        os._exit(0)
for child in range(4):
    os.wait()
"""


def test_lines_of_processes_that_share_one_log_do_not_run_into_each_other(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("wb") as stream:
        subprocess.run([sys.executable, "-c", _FOUR_PROCESSES_OF_TWO_VOICES], stderr=stream, check=True)

    lines = [json.loads(line) for line in log.read_text().splitlines()]

    assert len(lines) == 4 * 2 * 4000
    assert {line["event"] for line in lines} == {"said"}
