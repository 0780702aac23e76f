"""Tests of the fuzz targets without a fuzzer: on their seeds, on earlier crashes, and on damaged seeds."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from catalog_api.parameters import CURSOR
from tests.fuzz import CRASHES, all_targets, crashes
from tests.fuzz.api_requests import BODIES
from tests.fuzz.cursors import LISTS, operation_of
from tests.fuzz.service import OPERATIONS, close_service

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGETS = all_targets()


@pytest.fixture(autouse=True, scope="module")
def closed_service() -> Iterator[None]:
    yield
    close_service()


@pytest.mark.parametrize("name", TARGETS)
def test_target_takes_its_seeds_and_earlier_crashes(name: str) -> None:
    for content in [*TARGETS[name].seeds(), *crashes(name)]:
        TARGETS[name].run(content)


@pytest.mark.parametrize("name", TARGETS)
def test_target_takes_damaged_seeds(name: str) -> None:
    seed = TARGETS[name].seeds()[0]
    chance = random.Random(name)  # noqa: S311
    for _ in range(3):
        content = bytearray(seed)
        for _ in range(chance.randint(1, 6)):
            place = chance.randrange(len(content))
            content[place : place + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 4))
        TARGETS[name].run(bytes(content))


def test_every_kept_crash_belongs_to_a_target() -> None:
    assert {path.name for path in CRASHES.glob("*") if path.is_dir()} <= set(TARGETS)


def test_every_operation_with_a_body_is_fuzzed() -> None:
    assert set(BODIES) == {name for name, operation in OPERATIONS.items() if operation.body is not None}


def test_every_list_in_pages_is_fuzzed() -> None:
    assert {operation_of(name) for name in LISTS} == {name for name, operation in OPERATIONS.items() if CURSOR in operation.parameters}
