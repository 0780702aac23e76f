"""The fuzz targets without a fuzzer: over their seeds, what once crashed them, and seeds damaged as a fuzzer would begin."""

from __future__ import annotations

import random

import pytest

from tests.fuzz import CRASHES, all_targets, crashes

TARGETS = all_targets()


@pytest.mark.parametrize("name", TARGETS)
def test_target_takes_its_seeds_and_what_once_crashed_it(name: str) -> None:
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
