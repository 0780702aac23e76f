"""Coverage-guided fuzzing: the type of a target, and all targets. `make fuzz` runs them; `python -m tests.fuzz --help` prints the options.

To add a target, write a function that takes bytes and raises only what must not happen, and put it with its seeds into the TARGETS of a
module named in MODULES. The targets over their seeds, and over every input that once crashed one (`crashes/<target>/`), are also tests
(test_targets.py), which need no fuzzer.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

MODULES = ("tests.fuzz.dump_readers", "tests.fuzz.cursors", "tests.fuzz.fingerprints", "tests.fuzz.audio_heads", "tests.fuzz.api_requests")
INSTRUMENTED = ("pipeline", "catalog_store", "catalog_api", "account_store", "audio_recognition")
"""Packages whose branches guide the fuzzer."""
CRASHES = Path(__file__).with_name("crashes")


@dataclass(frozen=True)
class Target:
    """`run` takes any bytes and returns, or raises when there is a fault; `seeds` are good inputs to begin with.

    `words` are parts of inputs that a fuzzer does not find by itself.
    """

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    words: Callable[[], list[bytes]] = list


def all_targets() -> dict[str, Target]:
    """By name."""
    return {target.name: target for module in MODULES for target in import_module(module).TARGETS}


def target_named(name: str) -> Target:
    """Return the target. Only modules up to its own are imported."""
    return next(target for module in MODULES for target in import_module(module).TARGETS if target.name == name)


def chosen(name: bytes, among: Collection[str]) -> str:
    """Return the choice of that name, else any: an input whose name the fuzzer damaged is still useful."""
    text = name.decode("latin-1")
    return text if text in among else sorted(among)[crc32(name) % len(among)]


def crashes(target: str) -> list[bytes]:
    """Return the inputs that once crashed a target."""
    return [path.read_bytes() for path in sorted((CRASHES / target).glob("*"))]
