from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT, run_module

NUMBERS = (0, 1, 1_000_003)
PROGRAM = f"""
import os
from stream_monitor.__main__ import restrict_to_core
cores = os.sched_getaffinity(0)
for number in {NUMBERS}:
    os.sched_setaffinity(0, cores)
    restrict_to_core(number)
    print(*os.sched_getaffinity(0))
"""


def test_worker_stays_on_one_of_the_cores_that_it_may_use() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    cores = sorted(os.sched_getaffinity(0))
    assert done.stdout.splitlines() == [str(cores[number % len(cores)]) for number in NUMBERS]


@pytest.mark.parametrize("seconds", ["0", "-5", "nan", "inf"])
def test_length_of_a_lease_out_of_its_range_is_refused(seconds: str) -> None:
    done = run_module("stream_monitor", "--catalog", "none", "--matcher-socket", "none", "--lease-seconds", seconds, check=False)
    assert (done.returncode, f"{seconds} is no length of a lease; name 1 to 3600 seconds" in done.stderr) == (2, True), done.stderr
