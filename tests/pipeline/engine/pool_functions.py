"""Functions that the tests of engines run in workers. A worker imports them by their module."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from catalog_store.memory_budget import get_budget

if TYPE_CHECKING:
    from pathlib import Path


def fail_at_three(number: int) -> int:
    if number == 3:
        raise ValueError("three is out")
    return number


def memory(_number: int) -> int:
    return get_budget().total_bytes


def process(_number: int) -> int:
    return os.getpid()


def write_process_and_wait(folder: Path) -> None:
    (folder / str(os.getpid())).touch()
    time.sleep(600)
