"""One run of one function in a fresh process: what it answered, CPU seconds of it and of everything it started, peak memory, wall time.

The process adopts orphans (Linux `PR_SET_CHILD_SUBREAPER`): a worker pool's server process outlives the call that started it, and its
workers' CPU time would be counted nowhere.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Run:
    """`cpu` and `wall` in seconds; `memory` is the resident peak of the largest process in MiB."""

    answer: Any
    cpu: float
    wall: float
    memory: float


def measure(function: str, *arguments: str) -> Run:
    """Call `module:function` with text arguments; it must return something that JSON can hold. Its interpreter's start is counted in."""
    supervisor = [sys.executable, "-m", "benchmarks.measuring", "supervise", function, *arguments]
    answer = subprocess.run(supervisor, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return Run(**json.loads(answer.stdout.splitlines()[-1]))


def fastest(function: str, *arguments: str, runs: int) -> Run:
    """The run that took the least CPU of several: other work on the machine only ever adds."""
    return min((measure(function, *arguments) for _ in range(runs)), key=lambda run: run.cpu)


def _supervise(function: str, arguments: list[str]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.measuring", "call", function, *arguments]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    wall = time.perf_counter() - started
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    facts = {"cpu": used.ru_utime + used.ru_stime, "wall": wall, "memory": used.ru_maxrss / 1024}
    print(json.dumps({"answer": json.loads(answer.stdout.splitlines()[-1]), **facts}))


def _call(function: str, arguments: list[str]) -> None:
    module, _, name = function.partition(":")
    print(json.dumps(getattr(__import__(module, fromlist=[name]), name)(*arguments)))


if __name__ == "__main__":
    {"supervise": _supervise, "call": _call}[sys.argv[1]](sys.argv[2], sys.argv[3:])
