from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

PROGRAM = (
    "import os, sys; from stream_monitor.__main__ import restrict_to_core as stay; stay(int(sys.argv[1])); print(*os.sched_getaffinity(0))"
)


@pytest.mark.parametrize("number", [0, 1, 1_000_003])
def test_worker_stays_on_one_of_the_cores_that_it_may_use(number: int) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(number)], cwd=ROOT, capture_output=True, text=True, check=True)
    cores = sorted(os.sched_getaffinity(0))
    assert done.stdout.split() == [str(cores[number % len(cores)])]
