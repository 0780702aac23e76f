"""One run of a function in a fresh process: its result, CPU seconds including all it started, peak memory, wall time.

The process adopts orphans (Linux `PR_SET_CHILD_SUBREAPER`). A worker pool's server process outlives the call that started it, and its
workers' CPU time would otherwise not be counted.
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
    """`cpu` and `wall` in seconds; memory in MiB, resident peaks."""

    answer: Any
    cpu: float
    wall: float
    memory: float
    """Peak memory of the largest process."""
    own_memory: float
    """Peak memory of the process that ran the function."""
    worker_memory: float
    """Peak memory of the largest process that outlived it: the server of a pool and its workers; 0 without."""


def measure(function: str, *arguments: str, python: str = sys.executable) -> Run:
    """Call `module:function` with text arguments; it must return a value that JSON can hold. Includes the start of the interpreter.

    `python` names the interpreter of another environment, which then needs only the imports of that module.
    """
    # Two processes: the supervisor outlives the call, so that it can wait for whatever the call leaves behind.
    supervisor = [python, "-m", "benchmarks.measurement", "supervise", function, *arguments]
    answer = subprocess.run(supervisor, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return Run(**json.loads(answer.stdout.splitlines()[-1]))


def measure_fastest(function: str, *arguments: str, runs: int) -> Run:
    """Measure several runs and return the one with the least CPU: other work on the machine only ever adds."""
    return min((measure(function, *arguments) for _ in range(runs)), key=lambda run: run.cpu)


def _supervise(function: str, arguments: list[str]) -> None:
    # Before the child starts, or orphans of the child would go to the init process.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.measurement", "call", function, *arguments]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    wall = time.perf_counter() - started
    workers = 0
    while True:
        try:
            _, _, orphan = os.wait3(0)
        except ChildProcessError:
            break
        workers = max(workers, orphan.ru_maxrss)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    facts = {"cpu": used.ru_utime + used.ru_stime, "wall": wall, "memory": used.ru_maxrss / 1024, "worker_memory": workers / 1024}
    print(json.dumps({**json.loads(answer.stdout.splitlines()[-1]), **facts}))


def _call(function: str, arguments: list[str]) -> None:
    # The import counts as part of the run, because a user pays for it as well.
    module, _, name = function.partition(":")
    answer = getattr(__import__(module, fromlist=[name]), name)(*arguments)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"answer": answer, "own_memory": own}))


if __name__ == "__main__":
    {"supervise": _supervise, "call": _call}[sys.argv[1]](sys.argv[2], sys.argv[3:])
