"""Coverage-guided fuzzing: what a target is, and all targets there are. `make fuzz` runs them, `python -m tests.fuzz --help` tells more.

To add a target, write a function that takes bytes and raises only what must not happen, and put it with its seeds into the TARGETS of a
module named in MODULES. The targets over their seeds, and over every input that once crashed one (`crashes/<target>/`), are also tests
(test_targets.py), which need no fuzzer.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES = ("tests.fuzz.dump_readers",)
INSTRUMENTED = ("pipeline", "catalog_store")
"""Packages whose branches guide the fuzzer."""
CRASHES = Path(__file__).with_name("crashes")


@dataclass(frozen=True)
class Target:
    """`run` takes any bytes and returns, or raises when there is a fault; `seeds` are good inputs to begin with."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


def all_targets() -> dict[str, Target]:
    """By name."""
    return {target.name: target for module in MODULES for target in import_module(module).TARGETS}


def crashes(target: str) -> list[bytes]:
    """Inputs that once crashed a target."""
    return [path.read_bytes() for path in sorted((CRASHES / target).glob("*"))]
