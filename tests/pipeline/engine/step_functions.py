"""Functions that the tests of steps in processes of their own run there. Such a process imports them by their module."""

from __future__ import annotations

import logging
import os
import signal
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from catalog_store.memory_budget import get_budget
from pipeline.engine.checkpoints import find_token
from pipeline.engine.pool import find_engine, map_ordered
from pipeline.engine.progress import count_bytes, enter_section
from tests.pipeline.engine.pool_functions import process, write_process_and_wait

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.memory_budget import MemoryBudget
    from pipeline.engine.pool import Engine

HELD = 200_000_000


class Setting(NamedTuple):
    process: int
    budget: MemoryBudget
    engine: Engine | None
    token: str


def describe_setting() -> Setting:
    return Setting(os.getpid(), get_budget(), find_engine(), find_token())


def tell(lines: int) -> list[int]:
    """Pass sections and log lines, and return the processes of two workers."""
    enter_section("reading", 2_000_000)
    count_bytes("tracks", 1_500_000)
    for number in range(lines):
        logging.getLogger("pipeline.told").warning("line %d", number)
    logging.getLogger("pipeline.told").debug("too much")
    return list(map_ordered(process, [1, 2], workers=2))


def hold_memory() -> int:
    return len(bytes(HELD).replace(b"\0", b"1"))


def fail() -> None:
    raise ValueError("three is out")


def draws_progress() -> bool:
    """Return whether DuckDB shows the progress of a query on standard output."""
    with duckdb.connect() as connection:
        return bool(connection.sql("SELECT current_setting('enable_progress_bar')").fetchall()[0][0])


def end_from_outside() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait_in_workers(folder: Path) -> None:
    (folder / str(os.getpid())).touch()
    list(map_ordered(write_process_and_wait, [folder] * 2, workers=2))
