"""Tests of the signals that stop programs."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.waiting import PATIENCE_SECONDS

HELD = """
import os, threading, time
from catalog_store.stop_signals import run_until_signal

event = threading.Event()

def run():
    # As in the middle of `event.wait`, in the thread that works.
    with event._cond:
        os.kill(os.getpid(), {number})
        time.sleep(0.2)
    assert event.wait(60)
    return "stopped"

print(run_until_signal(run, event.set))
"""
FAILING = """
from catalog_store.stop_signals import run_until_signal

run_until_signal(lambda: 1 // 0, print)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_the_worst_moment_stops_the_program(number: signal.Signals) -> None:
    ended = _run(HELD.format(number=int(number)))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "stopped\n", "")


def test_an_error_of_the_work_ends_the_program() -> None:
    ended = _run(FAILING)
    assert ended.returncode == 1
    assert ended.stderr.endswith("ZeroDivisionError: integer division or modulo by zero\n")


def _run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
