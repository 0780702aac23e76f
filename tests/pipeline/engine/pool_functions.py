"""Functions that the tests of engines run in workers. A worker imports them by their module."""

from __future__ import annotations

import os

from catalog_store.memory_budget import get_budget


def fail_at_three(number: int) -> int:
    if number == 3:
        raise ValueError("three is out")
    return number


def memory(_number: int) -> int:
    return get_budget().total_bytes


def process(_number: int) -> int:
    return os.getpid()
